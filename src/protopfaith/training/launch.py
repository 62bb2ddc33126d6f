"""From a recipe to a run folder."""

from __future__ import annotations

import copy
import logging
import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

from protopfaith.allocation import keeping_freed_memory
from protopfaith.annotations import check_arguments
from protopfaith.arguments import instance, is_text, named, shown
from protopfaith.data import ImageData
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import is_file, reason
from protopfaith.locks import exclusive
from protopfaith.network import PatchNetwork
from protopfaith.network.encoders.libraries import UnreachableWeightsError
from protopfaith.network.encoders.lite import INSTALL, LITE, has_lite_weights
from protopfaith.specs import no_gpu
from protopfaith.training.checkpoint import Checkpoint
from protopfaith.training.curves import save_curves
from protopfaith.training.family import trainer_named, trainer_of
from protopfaith.training.images import seed_for
from protopfaith.training.new_run import check_own_recipe, check_resumable, create_run
from protopfaith.training.recipe import Recipe
from protopfaith.training.recipe_sections import ComputeRecipe
from protopfaith.training.reference_measurement import keep_reference
from protopfaith.training.run import Run, load_recipe_data
from protopfaith.training.step_memory import check_step, check_weights
from protopfaith.training.unused import check_used
from protopfaith.writing import AGAIN, refuse_existing, remove_leftovers

if TYPE_CHECKING:
    from lightning.fabric import Fabric

LOCK = ".lock"
FEW_PROCESSES = 8  # of one training on a CPU: so many are fine on any machine
CLUSTER = ("MASTER_ADDR", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "LSB_JOBID", "KUBERNETES_PORT")
logger = logging.getLogger("protopfaith")


def train(
    recipe: Recipe | None,
    folder: Path | str,
    resume: bool = False,
    *,
    data: ImageData | None = None,
    model: PatchNetwork | None = None,
    fabric: Fabric | None = None,
    progress: bool = True,
) -> Run:
    """Trains a network by a recipe and leaves everything in `folder`.

    `resume` continues an interrupted run (`recipe` may then be None: the folder holds it) and ends with
    the weights that the uninterrupted run would have had. `data` and `model` replace those of the recipe,
    for images or encoders that have no name. `fabric` is one that has been launched already, for
    callers that train several times.

    Args:
        recipe: how to train; may be None to resume
        folder: the run folder; it must not exist yet, unless it is resumed
        resume: continue what was interrupted
        data: images instead of those that the recipe names
        model: a network instead of the one that the recipe describes
        fabric: a Fabric that has been launched already
        progress: show a bar and a line for each stage

    >>> from tempfile import TemporaryDirectory
    >>> from protopfaith.training import load_recipe
    >>> small = ["data.size=[16,16]", "data.options={train: 16, validation: 8, test: 8}"]
    >>> short = ["schedule.cycles=1", "schedule.pretraining.epochs=1", "schedule.warmup.epochs=1"]
    >>> short += ["schedule.joint.epochs=1", "schedule.classifier.epochs=1", "compute.accelerator=cpu"]
    >>> with TemporaryDirectory() as folder:
    ...     run = train(load_recipe("birds", small + short), f"{folder}/run", progress=False)
    ...     run.is_finished()
    True
    """
    check_arguments(train, locals())
    folder = Path(instance(folder, (str, Path), "A run", "a folder"))
    if resume and recipe is None:
        recipe = _own_recipe(Run(folder), data)
    if recipe is None:
        raise ProtoPFaithError("A new run needs a recipe; name one, or resume an existing run.")
    instance(recipe, Recipe, "A recipe", "what load_recipe gives")
    for given, kind in ((data, ImageData), (model, PatchNetwork)):
        if given is not None:
            instance(given, kind, "What replaces a part of the recipe", f"of type {kind.__name__}")
    _check_name(folder)
    if not resume and model is None:
        check_used(recipe)
    if fabric is None:
        fabric = _launched(recipe, folder, resume)
    instance(getattr(fabric, "world_size", None), int, "The fabric", "one of Lightning that was launched")
    data = load_recipe_data(recipe) if data is None else data
    check_batch(recipe, data, fabric.world_size)
    # Before the folder: weights that are not there, or an encoder that does not fit, leave none behind.
    if model is None:
        check_weights(recipe)
        recipe, model = build_reachable(recipe, data)
    trainer_class = trainer_of(type(model))
    trainer_class.check(model, recipe, data)
    check_step(model, recipe, data, fabric.device, fabric.world_size)
    check_network(model, recipe, data, fabric.world_size)
    run = open_run(fabric, folder, recipe, data, resume)
    with ExitStack() as holding:
        if fabric.is_global_zero:
            holding.enter_context(exclusive(folder / LOCK, f"The run {folder}"))
        holding.enter_context(keeping_freed_memory())
        holding.enter_context(torch.random.fork_rng())  # the caller's random numbers stay as they were
        trainer = trainer_class(fabric, run, recipe, data, model, progress=progress)
        if resume and run.checkpoint_path.exists():
            trainer.resume(Checkpoint.load(run.checkpoint_path))
        _fit(trainer, folder)
        if fabric.is_global_zero:
            _conclude(run, data, model)
    return run


def train_or_resume(recipe: Recipe, folder: Path, fabric: Fabric, progress: bool) -> Run:
    """Trains one of several runs, from where it was left; a finished one stays as it is."""
    started = fabric.broadcast(is_file(folder / "recipe.yaml"))
    run = train(recipe, folder, resume=started, fabric=fabric, progress=progress)
    fabric.barrier()
    return run


def _launched(recipe: Recipe, folder: Path, resume: bool) -> Fabric:
    """A Fabric of the recipe's devices; before these start, what is wrong with the folder is told."""
    fabric = make_fabric(recipe.compute)
    if fabric.is_global_zero and resume:
        check_own_recipe(Run(folder), recipe)
    elif fabric.is_global_zero:
        refuse_existing(folder)
    fabric.launch()
    return fabric


def _fit(trainer: Any, folder: Path) -> None:
    """Trains; an error after which a run can go on ends with the command for that."""
    try:
        trainer.fit()
    except ProtoPFaithError as error:
        if not str(error).endswith(AGAIN):
            raise
        go_on = f"go on with: protopfaith train --resume --out {folder}"
        raise ProtoPFaithError(str(error).removesuffix(AGAIN) + go_on) from error


def _check_name(folder: Path) -> None:
    if not str(folder).strip(". /"):
        raise ProtoPFaithError(f"{str(folder)!r} is no name for a run folder; choose another.")
    if not is_text(folder):
        raise ProtoPFaithError(
            f"The name of the run folder {named(folder)} is no UTF-8, in which TensorBoard writes nothing; "
            "choose another."
        )


def _conclude(run: Run, data: ImageData, model: PatchNetwork) -> None:
    """What a finished run has beside its network: curves, and thresholds where findings need them."""
    save_curves(run)
    if data.outcome == "several":
        named = model.encoder_name is not None
        keep_reference(run, data, run.model(encoder=None if named else copy.deepcopy(model.encoder).cpu()))


def _own_recipe(run: Run, data: ImageData | None) -> Recipe:
    """The recipe that a run goes on with; raises if it names images and the run was not made here."""
    if data is None:
        run.check_paths()
    return run.recipe()


@torch.no_grad()
def check_network(model: PatchNetwork, recipe: Recipe, data: ImageData, ranks: int) -> None:
    """Raises if the network cannot take images of the size that it will be trained on."""
    smallest = min(recipe.optimization.batch_size, len(data.train)) // ranks
    training = model.training
    for size in {data.preprocessing.size, recipe.augmentation.size or data.preprocessing.size}:
        image = torch.zeros(1, data.preprocessing.channels, *size, device=model.prototypes.device)
        try:
            positions = model.eval().latent(image)[0, 0].numel()
        except ProtoPFaithError:
            raise
        except Exception as error:  # whatever an encoder raises where its map has no pixels left
            raise ProtoPFaithError(
                f"The encoder {model.encoder_name or type(model.encoder).__name__} cannot take images of "
                f"{size[0]}x{size[1]} pixels ({reason(error)}); choose another size, often a multiple of 32, "
                "or another encoder."
            ) from error
        finally:
            model.train(training)
        if positions * smallest < 2:
            raise ProtoPFaithError(
                "A batch of one image with a map of one position cannot be normalized; raise "
                "optimization.batch_size or data.size."
            )


def build_model(recipe: Recipe, data: ImageData) -> PatchNetwork:
    """The recipe's network for the data's classes, initialized from the recipe's seed.

    Args:
        recipe: names encoder, prototypes and seed
        data: has the classes and the number of channels

    >>> from protopfaith.training import load_recipe
    >>> from protopfaith.training.run import load_recipe_data
    >>> recipe = load_recipe("birds", ["data.options={train: 8, validation: 8, test: 8}"])
    >>> len(build_model(recipe, load_recipe_data(recipe)).class_names)
    8
    """
    check_arguments(build_model, locals())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_for(recipe.seed, "model"))
        return trainer_named(recipe.model.family).build(recipe, data)


def build_reachable(recipe: Recipe, data: ImageData) -> tuple[Recipe, PatchNetwork]:
    """The recipe's network; where its published weights cannot be had, one with the recipe's other encoder,
    and the recipe that says so."""
    other = recipe.model.otherwise
    try:
        return recipe, build_model(recipe, data)
    except UnreachableWeightsError as error:
        if other is None or other == recipe.model.encoder:
            raise
        if other == LITE and not has_lite_weights():
            sentence = str(error).rstrip(".")
            raise ProtoPFaithError(f"{sentence}; or take a smaller encoder: {INSTALL}.") from error
    logger.warning(
        "The weights of %s cannot be downloaded here: training goes on with the smaller encoder %s.",
        recipe.model.encoder,
        other,
    )
    recipe = replace(recipe, model=replace(recipe.model, encoder=other))
    return recipe, build_model(recipe, data)


def make_fabric(compute: ComputeRecipe, device: torch.device | None = None) -> Fabric:
    """Fabric as the recipe asks (or for one `device`), or one sentence on why that cannot be."""
    if device is not None:
        index = 0 if device.index is None else device.index
        devices = 1 if device.type == "cpu" else str([index])
        compute = replace(compute, accelerator=device.type, devices=devices, num_nodes=1, strategy="auto")
    _check_nodes(compute)
    _check_processes(compute)
    if compute.accelerator in ("cuda", "gpu") and not _gpu_available(compute.accelerator):
        raise no_gpu(compute.accelerator)
    from lightning.fabric import Fabric

    try:
        return Fabric(
            accelerator=compute.accelerator,
            devices=compute.devices,
            num_nodes=compute.num_nodes,
            strategy=compute.strategy,
            precision=_number_format(compute),
        )
    except Exception as error:  # Lightning raises several kinds of its own for what is not there
        raise ProtoPFaithError(
            f"Cannot train with compute.accelerator={compute.accelerator}, compute.devices="
            f"{compute.devices}, compute.strategy={compute.strategy} and compute.precision="
            f"{compute.precision}, as the recipe (of a run that is resumed, its recipe.yaml) says; change "
            "them there or in the command, for example to compute.accelerator=auto, compute.devices=1 and "
            "compute.strategy=auto."
        ) from error


def _number_format(compute: ComputeRecipe) -> Literal["32-true", "bf16-mixed", "16-mixed"]:
    if compute.precision != "auto":
        return compute.precision
    on_gpu = compute.accelerator in ("auto", "cuda", "gpu") and torch.cuda.is_available()
    return "bf16-mixed" if on_gpu and torch.cuda.is_bf16_supported() else "32-true"


def _check_processes(compute: ComputeRecipe) -> None:
    """Raises if there would be far more processes than processors: each takes the memory of a training."""
    on_cpu = compute.accelerator == "cpu" or (compute.accelerator == "auto" and not torch.cuda.is_available())
    most = max(os.cpu_count() or 1, FEW_PROCESSES)
    if on_cpu and str(compute.devices).isdecimal() and int(str(compute.devices)[:9]) > most:
        raise ProtoPFaithError(
            f"compute.devices is {shown(compute.devices)}, but the CPU of this machine is for {most} at "
            "most; use fewer."
        )


def _check_nodes(compute: ComputeRecipe) -> None:
    """Says what it will wait for; raises where nothing tells the machines of each other."""
    if compute.num_nodes == 1:
        return
    if not any(name in os.environ for name in CLUSTER):
        raise ProtoPFaithError(
            f"compute.num_nodes={compute.num_nodes} needs machines that know of each other: start the same "
            "command on each with MASTER_ADDR, MASTER_PORT and NODE_RANK set, by torchrun, or by SLURM."
        )
    logger.warning("Waiting for all of %d machines to start the same command ...", compute.num_nodes)


def _gpu_available(accelerator: str) -> bool:
    return torch.cuda.is_available() or (accelerator == "gpu" and torch.backends.mps.is_available())


def check_batch(recipe: Recipe, data: ImageData, ranks: int) -> None:
    """Raises if a batch has fewer images than devices, or a setting lacks the pre-training that it needs."""
    if min(recipe.optimization.batch_size, len(data.train)) < ranks:
        raise ProtoPFaithError(
            f"A batch of {recipe.optimization.batch_size} out of {len(data.train)} images cannot be "
            f"shared by {ranks} devices; raise optimization.batch_size or use fewer devices."
        )
    for setting, used in (
        ("model.initialization=evidence", recipe.model.initialization == "evidence"),
        ("costs.companion", recipe.costs.companion > 0),
    ):
        if used and not recipe.schedule.pretraining.epochs:
            raise ProtoPFaithError(
                f"{setting} needs the plain classifier first; set schedule.pretraining.epochs."
            )


def open_run(fabric: Fabric, folder: Path, recipe: Recipe, data: ImageData, resume: bool) -> Run:
    """Creates or checks the folder in the first process; an error there is everybody's."""
    problem: str | None = None
    if fabric.is_global_zero:
        try:
            if resume:
                check_resumable(Run(folder), recipe, data)
                remove_leftovers(folder)  # of a process killed while it wrote
            else:
                create_run(folder, recipe, data)
        except ProtoPFaithError as error:
            problem = str(error)
    problem = fabric.broadcast(problem)
    if problem:
        raise ProtoPFaithError(problem)
    return Run(folder)
