"""Whole runs: what they leave, how they resume, and how they fail."""

import errno
import json
import multiprocessing
import os
import signal
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from torch.distributed import TCPStore

from protopfaith.errors import ProtoPFaithError
from protopfaith.network import ProtoPNet
from protopfaith.network.encoders.libraries import UnreachableWeightsError
from protopfaith.network.encoders.lite import has_lite_weights
from protopfaith.training import Run, train
from protopfaith.training.launch import build_reachable, make_fabric
from protopfaith.training.metrics import EpochMetrics, MetricsFile
from protopfaith.training.recipe import recipe_from_dict

STAGES = ["pretraining"] * 2 + ["warmup"] * 2 + (["joint"] * 2 + ["classifier"] * 3) * 2


def changed(recipe, *overrides):
    return recipe_from_dict(recipe.to_dict(), overrides)


def same_weights(first: Run, second: Run, name: str = "last.safetensors") -> bool:
    ours, theirs = load_file(first.folder / name), load_file(second.folder / name)
    return ours.keys() == theirs.keys() and all(torch.equal(ours[key], theirs[key]) for key in ours)


def test_a_run_leaves_all_that_is_needed(trained, recipe, data):
    assert trained.recipe() == recipe
    assert trained.is_finished()
    environment = trained.environment()
    assert environment["seed"] == recipe.seed
    assert environment["data_fingerprint"] == data.fingerprint
    assert torch.__version__.startswith(environment["versions"]["torch"])
    assert list((trained.folder / "tensorboard").iterdir())
    table = trained.metrics()
    assert table.stage.tolist() == STAGES
    assert table.epoch.tolist() == list(range(len(STAGES)))
    assert table.projected.tolist() == [stage == "classifier" for stage in STAGES]
    assert not list(trained.folder.glob("*.partial"))
    assert (trained.folder / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_the_model_is_the_best_projected_epoch(trained):
    table = trained.metrics()
    projected = table[table.projected]
    assert trained.result()["validation_balanced_accuracy"] == projected.validation_balanced_accuracy.max()
    assert trained.result()["epoch"] == projected.epoch[projected.validation_balanced_accuracy.idxmax()]
    model = trained.model()
    assert not model.training
    assert all(source is not None for source in model.sources)
    assert projected.distinct_prototypes.between(3, 6).all()


def test_it_learns(trained):
    table = trained.metrics()
    pretraining = table[table.stage == "pretraining"]
    assert pretraining.loss.iloc[-1] < pretraining.loss.iloc[0]
    assert table.train_balanced_accuracy.iloc[-1] > 0.8


def test_f_alone_changes_in_its_stage(recipe, data, tmp_path):
    """After one or three epochs of F, all else is equal: V, Z, their batch norm, and the prototypes."""
    short = changed(recipe, "schedule.cycles=1", "schedule.classifier.epochs=1")
    runs = [
        train(recipe, tmp_path / str(epochs), data=data, progress=False)
        for epochs, recipe in ((1, short), (3, changed(recipe, "schedule.cycles=1")))
    ]
    ours, theirs = (load_file(run.checkpoint_path) for run in runs)
    names = [name for name in ours if name.startswith("model.")]
    assert any("running_var" in name for name in names)
    assert [name for name in names if not torch.equal(ours[name], theirs[name])] == [
        "model.classifier.weight"
    ]


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(trained, recipe, data, tmp_path):
    torch.rand(3)  # the caller's random numbers do not matter
    state = torch.random.get_rng_state()
    again = train(recipe, tmp_path / "again", data=data, progress=False)
    assert torch.equal(torch.random.get_rng_state(), state)  # and stay the caller's
    assert same_weights(trained, again)
    other = train(changed(recipe, "seed=4"), tmp_path / "other", data=data, progress=False)
    assert not same_weights(trained, other)


def test_streaming_from_workers_gives_the_same_weights(trained, recipe, data, tmp_path):
    streamed = changed(recipe, "compute.resident=never", "compute.workers=0")
    assert same_weights(trained, train(streamed, tmp_path / "streamed", data=data, progress=False))


@pytest.mark.parametrize("initialization", ["patches", "evidence"])
def test_other_ways_to_start(initialization, recipe, data, tmp_path):
    overrides = [
        f"model.initialization={initialization}",
        "projection.distinct=true",
        "schedule.cycles=1",
        "schedule.warmup.batch_norm=eval",
        "schedule.classifier.augment=false",
        "schedule.pretraining.rate=one_cycle",
        "costs.diversity=0.1",
        "costs.l1=0.001",
        "optimization.clip=1.0",
        "compute.validate=projected",
        "compute.channels_last=true",
    ]
    run = train(changed(recipe, *overrides), tmp_path / "run", data=data, progress=False)
    assert run.result()["distinct_prototypes"] == run.result()["prototypes"] == 6
    table = run.metrics()
    assert table.validation_balanced_accuracy[table.stage == "joint"].isna().all()


@pytest.mark.parametrize("augment", ["true", "false"])
def test_mixed_precision_keeps_distances_and_f_in_float32(recipe, data, tmp_path, augment):
    overrides = [
        "compute.precision=bf16-mixed",
        "schedule.cycles=1",
        f"schedule.classifier.augment={augment}",
    ]
    run = train(changed(recipe, *overrides), tmp_path / "run", data=data, progress=False)
    model = run.model()
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    logits = model(data.preprocessing.normalize(data.validation.uint8()))
    recalls = [(logits.argmax(1) == c)[data.validation.labels == c].float().mean() for c in range(3)]
    measured = run.result()["validation_balanced_accuracy"]
    assert measured == pytest.approx(float(torch.stack(recalls).mean()))
    for j, source in enumerate(model.sources):  # projected in float32 all the same
        image = data.preprocessing(data.train.image(data.train.paths.index(source.image)))
        assert model.distance_maps(image[None])[0, j, source.row, source.column] < 1e-6 * 8


def test_an_encoder_without_a_name_is_trained_and_given_again(recipe, data, tmp_path):
    def encoder():
        return torch.nn.Conv2d(3, 6, 5, stride=4)

    model = ProtoPNet(encoder(), list(data.classes), 2, 8)
    short = changed(recipe, "schedule.cycles=1")
    run = train(short, tmp_path / "run", data=data, model=model, progress=False)
    assert run.result()["prototypes"] == 6  # needs no encoder
    assert run.preprocessing() == data.preprocessing
    assert run.model(encoder=encoder()).sources == model.sources
    with pytest.raises(ProtoPFaithError, match="build that module"):
        run.model()


def test_without_a_validation_set_the_last_projected_epoch_wins(recipe, data, tmp_path):
    everything = replace(data, validation=data.train.subset([]))
    run = train(changed(recipe, "schedule.cycles=1"), tmp_path / "run", data=everything, progress=False)
    assert run.result()["epoch"] == run.metrics().epoch.max()
    assert run.result()["validation_balanced_accuracy"] is None


def test_early_stopping_counts_cycles_without_a_better_model(recipe, data, tmp_path):
    patient = changed(recipe, "schedule.patience=1", "schedule.cycles=30", "schedule.classifier.epochs=1")
    run = train(patient, tmp_path / "run", data=data, progress=False)
    table = run.metrics()
    best = table[table.projected].validation_balanced_accuracy.cummax()
    assert run.is_finished()
    assert table.cycle.max() < 30
    assert best.iloc[-1] == 1 or best.iloc[-1] == best.iloc[-2]  # the last cycle brought all or nothing
    assert (best.diff().dropna().iloc[:-1] > 0).all()  # every other one brought something


# --- interruption


KILLED = {
    "seed": 1,
    "model": {"encoder": "small", "prototypes_per_class": 2, "prototype_channels": 8},
    "augmentation": {
        "rotation": 10.0,
        "flip": 0.5,
        "color": 0.2,
        "size": [20, 20],
        "hide": {"share": 0.5, "copies": True, "smallest": 4, "largest": 8},
    },
    "costs": {"companion": 0.5},
    "optimization": {"batch_size": 4, "learning_rate": 0.003, "weight_decay": 0.01},
    "schedule": {
        "cycles": 1,
        "pretraining": {"epochs": 5, "rate": "one_cycle"},
        "warmup": {"epochs": 5},
        "joint": {"epochs": 5},
        "classifier": {"epochs": 10},
    },
    "compute": {"accelerator": "cpu"},
}


def train_until(stage: str, *arguments, **keywords) -> None:
    """Trains, and is killed when the second epoch of `stage` has its row: in a process of its own."""
    append = MetricsFile.append

    def append_and_die(self: MetricsFile, metrics: EpochMetrics) -> None:
        append(self, metrics)
        if metrics.stage == stage and metrics.stage_epoch:
            os.kill(os.getpid(), signal.SIGKILL)

    MetricsFile.append = append_and_die  # type: ignore[method-assign]
    train(*arguments, **keywords)


@pytest.fixture
def forkserver(monkeypatch):
    """Makes processes that have imported already what takes long to import."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["protopfaith.training", "lightning.fabric", "torch.utils.tensorboard"])
    return context


def test_killed_in_every_stage_and_resumed_it_ends_with_the_same_weights(data, tmp_path, forkserver):
    recipe, folder = recipe_from_dict(KILLED), tmp_path / "killed"
    for stage in ("pretraining", "warmup", "joint", "classifier"):
        process = forkserver.Process(
            target=train_until,
            args=(stage, recipe, folder, stage != "pretraining"),
            kwargs={"data": data, "progress": False},
        )
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        table = pd.read_csv(folder / "metrics.csv", on_bad_lines="skip")
        assert table.stage.iloc[-1] == stage
    assert not Run(folder).is_finished()

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        resumed = train(None, folder, resume=True, data=data, progress=False)
        whole = train(recipe, tmp_path / "whole", data=data, progress=False)
    finally:
        torch.set_num_threads(threads)
    assert resumed.is_finished()
    assert same_weights(resumed, whole)
    assert same_weights(resumed, whole, "model.safetensors")
    assert resumed.model().sources == whole.model().sources
    columns = [name for name in whole.metrics() if name != "seconds"]
    pd.testing.assert_frame_equal(resumed.metrics()[columns], whole.metrics()[columns])


def test_a_finished_run_resumes_to_itself(trained, data):
    before = trained.checkpoint_path.read_bytes()
    assert train(None, trained.folder, resume=True, data=data, progress=False).folder == trained.folder
    assert trained.checkpoint_path.read_bytes() == before
    assert trained.metrics().stage.tolist() == STAGES


def test_a_run_without_a_checkpoint_yet_starts_over(trained, recipe, data, tmp_path):
    from protopfaith.training.new_run import create_run

    create_run(tmp_path / "run", recipe, data)
    (tmp_path / "run" / ".last.safetensors.0.partial").write_bytes(b"half of it")
    assert same_weights(trained, train(recipe, tmp_path / "run", resume=True, data=data, progress=False))
    assert not list((tmp_path / "run").glob(".*"))


def test_full_disk_while_saving_leaves_the_last_checkpoint(trained, recipe, data, tmp_path, monkeypatch):
    """The fourth checkpoint finds the disk full; freed, the run resumes to the same weights."""
    write, calls = Path.write_bytes, []

    def write_until_full(path, content):
        if path.name.startswith(".last"):
            calls.append(path)
            if len(calls) == 4:
                write(path, content[: len(content) // 2])
                raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", write_until_full)
    with pytest.raises(ProtoPFaithError, match=r"last\.safetensors \(No space left on device\)"):
        train(recipe, tmp_path / "run", data=data, progress=False)
    monkeypatch.undo()
    assert not list((tmp_path / "run").glob(".last*"))
    assert len(Run(tmp_path / "run").metrics()) == 4
    assert same_weights(trained, train(None, tmp_path / "run", resume=True, data=data, progress=False))


# --- several processes


def train_as_rank(rank, port, *arguments):
    """One of two processes, as torchrun would start them."""
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "test"}
    where |= {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0"}
    os.environ.update({**where, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"})
    recipe, folder, data = arguments
    train(recipe, folder, data=data, progress=False)


def test_two_processes_train_one_model(recipe, data, tmp_path, forkserver):
    # The place where they meet is there before them, as torchrun's is: nobody else can take its port.
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    two = changed(recipe, "compute.devices=2", "compute.strategy=ddp", "schedule.cycles=1")
    processes = [
        forkserver.Process(target=train_as_rank, args=(rank, store.port, two, tmp_path / "run", data))
        for rank in range(2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=300)
        assert process.exitcode == 0
    run = Run(tmp_path / "run")
    assert run.is_finished()
    assert run.metrics().epoch.tolist() == list(range(2 + 2 + 2 + 3))
    model = run.model()
    for j, source in enumerate(model.sources):
        image = data.preprocessing(data.train.image(data.train.paths.index(source.image)))
        assert model.distance_maps(image[None])[0, j, source.row, source.column] < 1e-6 * 8


# --- misuse


def test_an_existing_folder_is_not_overwritten(trained, recipe, data, tmp_path):
    with pytest.raises(ProtoPFaithError, match="is there already and is not overwritten"):
        train(recipe, trained.folder, data=data)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ProtoPFaithError, match="is there already"):
        train(recipe, tmp_path / "file", data=data)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_network_that_cannot_be_built_leaves_no_folder(recipe, data, tmp_path):
    """So that the same command works once the setting is right."""
    wrong = replace(recipe, model=replace(recipe.model, weights=str(tmp_path / "gone.pth")))
    with pytest.raises(ProtoPFaithError, match=r"gone\.pth"):
        train(wrong, tmp_path / "run", data=data)
    assert not (tmp_path / "run").exists()


def test_resuming_with_another_recipe_or_other_images(trained, recipe, data):
    with pytest.raises(ProtoPFaithError, match=r"another recipe \(optimization\.batch_size was 12, now 9\)"):
        train(changed(recipe, "optimization.batch_size=9"), trained.folder, resume=True, data=data)
    with pytest.raises(ProtoPFaithError, match="images have changed"):
        train(recipe, trained.folder, resume=True, data=replace(data, fingerprint="other"))
    # where it computes may change
    train(changed(recipe, "compute.workers=1"), trained.folder, resume=True, data=data, progress=False)


def test_nothing_to_resume(recipe, data, tmp_path):
    with pytest.raises(ProtoPFaithError, match="is no run folder"):
        train(None, tmp_path / "nothing", resume=True)
    with pytest.raises(ProtoPFaithError, match="needs a recipe"):
        train(None, tmp_path / "nothing")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("accelerator", ["cuda", "gpu"])
def test_no_gpu_when_one_is_asked_for(accelerator, recipe, data, tmp_path):
    with pytest.raises(ProtoPFaithError, match=r"asks for a GPU .* but torch finds none"):
        train(changed(recipe, f"compute.accelerator={accelerator}"), tmp_path / "run", data=data)
    assert not (tmp_path / "run").exists()


def test_other_devices_that_are_not_there(recipe):
    with pytest.raises(ProtoPFaithError, match=r"compute\.accelerator=quantum.*recipe\.yaml"):
        make_fabric(changed(recipe, "compute.accelerator=quantum").compute)


@pytest.mark.parametrize("setting", ["model.initialization=evidence", "costs.companion=1"])
def test_some_settings_need_the_plain_classifier(setting, recipe, data, tmp_path):
    wrong = changed(recipe, setting, "schedule.pretraining.epochs=0")
    with pytest.raises(ProtoPFaithError, match=r"schedule\.pretraining\.epochs"):
        train(wrong, tmp_path / "run", data=data)


def test_a_companion_goes_on_learning(trained, recipe, data, tmp_path):
    """Without one, the head of the plain classifier stays as pre-training left it."""
    accompanied = train(changed(recipe, "costs.companion=1"), tmp_path / "run", data=data, progress=False)
    heads = [load_file(run.checkpoint_path)["head.weight"] for run in (trained, accompanied)]
    assert not torch.equal(*heads)
    warmed = changed(recipe, "costs.companion=1", "optimization.multipliers.head=0")
    still = train(warmed, tmp_path / "still", data=data, progress=False)
    torch.testing.assert_close(load_file(still.checkpoint_path)["head.weight"], heads[0])


def test_diverged_training_is_one_sentence(recipe, data, tmp_path):
    wild = changed(recipe, "schedule.pretraining.learning_rate=1e30")
    with pytest.raises(
        ProtoPFaithError,
        match=r"The loss became (nan|inf) in epoch.*lower schedule\.pretraining\.learning_rate",
    ):
        train(wild, tmp_path / "run", data=data, progress=False)


def test_a_run_without_a_model_yet(recipe, data, tmp_path):
    from protopfaith.training.new_run import create_run

    run = create_run(tmp_path / "run", recipe, data)
    with pytest.raises(ProtoPFaithError, match="has no model yet"):
        run.model()


def test_environment_is_plain_json(trained):
    text = (trained.folder / "environment.json").read_text()
    assert json.loads(text)["images"] == {"train": 36, "validation": 12, "test": 12}


@pytest.fixture
def no_hub(monkeypatch):
    def refuse(name, *args):
        raise UnreachableWeightsError(f"The weights 'imagenet' of {name} could not be downloaded.")

    monkeypatch.setattr("protopfaith.network.encoders.residual.torchvision_encoder", refuse)


@pytest.mark.usefixtures("no_hub")
def test_without_a_hub_there_is_a_smaller_encoder(recipe, data, caplog):
    """It stands in the run's recipe, so that the run is resumed and explained with it."""
    far = changed(recipe, "model.encoder=resnet50", "model.weights=imagenet")
    with pytest.raises(UnreachableWeightsError):
        build_reachable(far, data)
    if not has_lite_weights():
        pytest.skip("its weights are an extra")
    found, model = build_reachable(changed(far, "model.otherwise=efficientnet_lite0"), data)
    assert found.model.encoder == model.encoder_name == "efficientnet_lite0"
    assert "smaller encoder efficientnet_lite0" in caplog.text


@pytest.mark.usefixtures("no_hub")
def test_without_hub_and_extra_the_sentence_names_both_ways(recipe, data, monkeypatch):
    monkeypatch.setattr("protopfaith.training.launch.has_lite_weights", lambda: False)
    folder = changed(
        recipe, "model.encoder=resnet50", "model.weights=imagenet", "model.otherwise=efficientnet_lite0"
    )
    with pytest.raises(ProtoPFaithError, match=r"could not be downloaded; or .*protopfaith\[lite\]"):
        build_reachable(folder, data)
