"""Moment propagation: how fast dasp and moment_path are, how complete, and what common factors are worth.

    python benchmarks/moments.py --device cuda                         # ResNet50, 224 pixels, random weights
    python benchmarks/moments.py --device cuda --weights resnet50.pth  # ImageNet weights for the encoder
    python benchmarks/moments.py --device cuda --checkpoint model.safetensors --image bird.jpg
    python benchmarks/moments.py --small                               # a small network, on a CPU
    python benchmarks/moments.py --only factors --weights resnet50.pth # one of: dasp, path, factors, norms

- dasp: milliseconds per player for all prototypes, 2x2 windows and 32 sizes, timed on a few players after a
  warm-up; in plain float32, with TF32 convolutions (torch's default on a GPU), and fused; with the
  correlation of the values with those of plain float32, and moment passes per second as a fraction of plain
  passes.
- path: seconds for 32 nodes and 5 prototypes, the completeness gap they leave relative to the range of F,
  and the nodes and seconds that a gap of 1% takes.
- factors: the error of the means of every stage against sampled coalitions, root mean square over units
  relative to the spread of the true means between units, without and with common factors; for the encoder
  and for the paper's ResNet.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from opening import timed
from protopfaith.data import Preprocessing, read_image
from protopfaith.moments import Gaussian
from protopfaith.network import ProtoPNet, load, minimum_over_positions, read_metadata, squared_distances
from protopfaith.shapley import Attribution, Game, Players, estimate
from protopfaith.shapley.estimators.moment_propagation.draws import Independent, sketch
from protopfaith.shapley.estimators.moment_propagation.presence import PlayerImage

AUTHORS = 312.0  # ms per player: the authors' code on an H200, ResNet50, 1,000 prototypes, 32 sizes
PROTOTYPES = 5


def main(arguments: Sequence[str] | None = None) -> None:
    args = parse(arguments)
    torch.manual_seed(args.seed)
    device = torch.device(args.device)
    model, image = network(args).to(device), picture(args, preprocessing(args)).to(device)
    print(f"{torch.__version__}, {torch.cuda.get_device_name() if device.type == 'cuda' else 'CPU'}")
    print(f"{len(model.prototypes):,} prototypes, image {tuple(image.shape)}")
    if args.only in (None, "dasp"):
        dasp_speed(args, model, image)
    if args.only in (None, "path"):
        path_speed(args, model, image)
    if args.only in (None, "norms"):
        norms(args)
    if args.only in (None, "factors"):
        factors(args, model.encoder, image, args.encoder)
        if not args.small:
            paper = ProtoPNet("resnet", 2, 7, 512, in_channels=1).eval().encoder.to(device)
            factors(args, randomized(paper), image[:1], "the paper's ResNet, random")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--encoder", default="resnet50", help="resnet50_v1 for weights of the original network"
    )
    parser.add_argument("--weights", type=Path, help="state dict of the encoder")
    parser.add_argument(
        "--checkpoint", type=Path, help="a trained network of ours, instead of encoder and weights"
    )
    parser.add_argument("--image", type=Path, help="a picture; without it smooth noise")
    parser.add_argument("--size", type=int, help="of the image: the checkpoint's by default, or 224")
    parser.add_argument("--players", type=int, default=2, help="side of the windows in pixels")
    parser.add_argument("--timed", type=int, default=24, help="players that dasp is timed on")
    parser.add_argument("--batch-size", type=int, default=512, help="moment passes at a time")
    parser.add_argument("--nodes", type=int, default=32)
    parser.add_argument("--budget", type=int, default=2048, help="moment passes for the 1%% gap at most")
    parser.add_argument(
        "--samples", type=int, default=2048, help="coalitions that the factors are compared with"
    )
    parser.add_argument("--only", choices=["dasp", "path", "factors", "norms"])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(arguments)
    if args.small:
        args.encoder, args.size, args.players, args.timed, args.batch_size = "small", 64, 8, 2, 32
        args.nodes, args.budget, args.samples = 8, 64, 64
    return args


def network(args: argparse.Namespace) -> ProtoPNet:
    if args.checkpoint:
        return load(args.checkpoint)[0]
    classes = 4 if args.small else 200
    model = ProtoPNet(args.encoder, classes, 5, 128, weights=args.weights).eval()
    return model if args.weights else randomized(model)


def randomized(model: nn.Module) -> nn.Module:
    """Batch-norm statistics as after training: not the identity."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_var, 0.5, 2)
            nn.init.normal_(module.running_mean, std=0.3)
            nn.init.normal_(module.bias, std=0.3)
    return model


def preprocessing(args: argparse.Namespace) -> Preprocessing:
    """The checkpoint's own, where it says so; ImageNet's otherwise."""
    stated = read_metadata(args.checkpoint).get("preprocessing") if args.checkpoint else None
    found = Preprocessing.from_dict(stated) if stated else Preprocessing((224, 224))
    return replace(found, size=(args.size, args.size)) if args.size else found


def picture(args: argparse.Namespace, preprocessing: Preprocessing) -> Tensor:
    if args.image:
        return preprocessing(read_image(args.image))
    layers = [
        nn.functional.interpolate(
            torch.randn(1, preprocessing.channels, 2**k, 2**k), preprocessing.size, mode="bicubic"
        )[0]
        for k in range(2, 7)
    ]
    return torch.stack(layers).sum(0) / 2


def dasp_speed(args: argparse.Namespace, model: ProtoPNet, image: Tensor) -> None:
    players = Players.windows(image.shape[1:], args.players)
    game = Game(model.distances, image, players)
    plain = plain_speed(game, args.batch_size)
    print(f"\ndasp, {len(players):,} players, plain forward passes: {plain:,.0f}/s")
    print(f"{'':>16} {'ms/player':>10} {'vs 312 ms':>10} {'passes/plain':>13} {'correlation':>12}")
    cuda = image.is_cuda
    plans: list[tuple[str, bool, bool]] = [("float32", False, False)]
    if cuda:
        plans += [("TF32", True, False), ("float32, fused", False, True), ("TF32, fused", True, True)]
    exact = None
    for name, tf32, fuse in plans:
        with convolutions(tf32):
            first = max(args.batch_size // 64, 1)  # a whole batch, so that the timed ones are not the first
            warm = estimate(game, "dasp", batch_size=args.batch_size, fuse=fuse, stop_after=first)
            seconds, result = timed(
                lambda warm=warm, fuse=fuse: estimate(
                    game, "dasp", batch_size=args.batch_size, fuse=fuse, stop_after=args.timed, resume=warm
                ),
                image.device,
            )
        exact = result if exact is None else exact
        passes = (result.evaluations - warm.evaluations) / seconds
        ms = 1000 * seconds / args.timed
        agreement = correlation(result, exact)
        print(f"{name:>16} {ms:10.1f} {AUTHORS / ms:10.1f} {passes / plain:13.2f} {agreement:12.5f}")


def path_speed(args: argparse.Namespace, model: ProtoPNet, image: Tensor) -> None:
    chosen = model.prototypes[:: max(len(model.prototypes) // PROTOTYPES, 1)][:PROTOTYPES].detach()

    def distances(x: Tensor) -> Tensor:
        return minimum_over_positions(squared_distances(model.latent(x), chosen))

    game = Game(distances, image, Players.windows(image.shape[1:], args.players))
    cuda = image.is_cuda

    def run(**options: object) -> Attribution:
        return estimate(game, "moment_path", nodes=args.nodes, batch_size=args.nodes, **options)

    print(f"\nmoment_path, {len(chosen)} prototypes, {game.n_players:,} players")
    for fuse in [False, True] if cuda else [False]:
        run(fuse=fuse)
        seconds, result = timed(lambda fuse=fuse: run(fuse=fuse), image.device)
        how = f"{args.nodes} nodes{', fused' if fuse else ''}"
        print(f"{how}: {seconds:.2f} s, gap {result.precision:.1%} of the range of F")
    seconds, result = timed(lambda: run(precision=0.01, budget=args.budget, fuse=cuda), image.device)
    met = "reached" if result.reached else f"not reached, {result.precision:.1%}"
    nodes, passes = result.options["nodes"], result.evaluations
    print(f"gap of 1%: {met} with {nodes} nodes, {passes} passes, {seconds:.1f} s", flush=True)
    for gap, total in zip(result.completeness_gap.tolist(), result.total.tolist(), strict=True):
        print(f"  f(image) - f(baseline) = {total:+.5f}, the values' sum misses it by {gap:+.5f}")


@torch.no_grad()
def norms(args: argparse.Namespace) -> None:
    """Layer norm divides by a random variable: its rule against samples."""
    rounds = 2 if args.small else 20
    print(f"\nlayer norm, variances up to 1, {rounds * 10_000:,} samples")
    for count in (16, 96, 384):
        generator = torch.Generator().manual_seed(count)
        mean = torch.randn(4, count, generator=generator, dtype=torch.float64)
        variance = torch.rand(4, count, generator=generator, dtype=torch.float64)
        found = nn.functional.layer_norm(Gaussian(mean, variance), (count,))
        first, second = torch.zeros_like(mean), torch.zeros_like(mean)
        for _ in range(rounds):
            noise = torch.randn(10_000, 4, count, generator=generator, dtype=torch.float64)
            y = nn.functional.layer_norm(mean + variance.sqrt() * noise, (count,))
            first, second = first + y.mean(0) / rounds, second + y.square().mean(0) / rounds
        truth = second - first.square()
        off = float(((found.moments[0] - first) / truth.sqrt()).abs().max())
        ratio = found.variance / truth - 1
        print(
            f"{count:4d} variables: mean off by at most {off:.4f} standard deviations, variance by at most "
            f"{float(ratio.abs().max()):.1%}, on average {float(ratio.mean()):+.1%}"
        )


@torch.no_grad()
def factors(args: argparse.Namespace, encoder: nn.Module, image: Tensor, name: str) -> None:
    windows = (8,) if args.small else (16, 8)
    size = image.shape[-1] // (1 if args.small else 2)
    image = nn.functional.interpolate(image[None], size, mode="area")[0]
    stages = list(range(len(list(encoder.children()))))[-5:]
    print(f"\nerror of the means, {name}, {size} pixels, {args.samples} sampled coalitions")
    for window in windows:
        players = Players.windows(image.shape[1:], window)
        for q in (0.1, 0.5, 0.9):
            truth, noise = sampled(encoder, image, players, q, args=args, stages=stages)
            for count in (0, 9, 16):
                directions = sketch(players.labels, count).to(image) if count else None
                draw = Independent(torch.tensor([q], device=image.device), directions)
                random = PlayerImage.of(image, torch.zeros_like(image), players.labels.to(image.device), draw)
                found = [x.moments[0][0] for x in recorded(encoder, random, stages)]
                errors = [
                    float((f - t).square().mean().sqrt() / t.std()) for f, t in zip(found, truth, strict=True)
                ]
                shown = " ".join(f"{e:6.3f}" for e in errors)
                print(f"{window:3d}x{window:<3d} q={q} factors={count:<3d} {shown}")
            print(f"{'(sampling itself)':>26} " + " ".join(f"{e:6.3f}" for e in noise))


def sampled(
    encoder: nn.Module,
    image: Tensor,
    players: Players,
    q: float,
    *,
    args: argparse.Namespace,
    stages: list[int],
) -> tuple[list[Tensor], list[float]]:
    """Means of every stage over sampled coalitions, and their own uncertainty."""
    generator = torch.Generator(image.device).manual_seed(args.seed)
    here = players.to(image.device)
    sums: list[Tensor] = []
    squares: list[Tensor] = []
    done = 0
    while done < args.samples:
        masks = here.masks(torch.rand(64, len(players), generator=generator, device=image.device) < q)
        found = recorded(encoder, image * masks, stages)
        batch = [(x.double().sum(0), x.double().square().sum(0)) for x in found]
        sums = [b[0] for b in batch] if not sums else [s + b[0] for s, b in zip(sums, batch, strict=True)]
        squares = (
            [b[1] for b in batch] if not squares else [s + b[1] for s, b in zip(squares, batch, strict=True)]
        )
        done += 64
    means = [s / done for s in sums]
    variances = [(s / done - m.square()).clamp_min(0) for s, m in zip(squares, means, strict=True)]
    return means, [float((v / done).mean().sqrt() / m.std()) for v, m in zip(variances, means, strict=True)]


def recorded(encoder: nn.Module, x: Tensor | Gaussian, stages: list[int]) -> list:
    """What the chosen children of an encoder put out."""
    outputs: dict[int, object] = {}
    hooks = [
        child.register_forward_hook(lambda _m, _i, output, key=key: outputs.__setitem__(key, output))
        for key, child in enumerate(encoder.children())
        if key in stages
    ]
    try:
        encoder(x)
    finally:
        for hook in hooks:
            hook.remove()
    return [outputs[key] for key in sorted(outputs)]


def plain_speed(game: Game, batch: int) -> float:
    images = game.image[None].expand(batch, -1, -1, -1).contiguous(memory_format=torch.channels_last)
    with torch.no_grad():
        game.function(images)
        seconds, _ = timed(lambda: [game.function(images) for _ in range(2)], images.device)
    return 2 * batch / seconds


@contextmanager
def convolutions(tf32: bool) -> Iterator[None]:
    """TF32 or full float32 in convolutions, by the setting that this version of torch has."""
    setting = getattr(torch.backends.cudnn, "conv", None)
    owner, name = (torch.backends.cudnn, "allow_tf32") if setting is None else (setting, "fp32_precision")
    before = getattr(owner, name)
    setattr(owner, name, tf32 if setting is None else "tf32" if tf32 else "ieee")
    try:
        yield
    finally:
        setattr(owner, name, before)


def correlation(a: Attribution, b: Attribution) -> float:
    done = ~torch.isnan(a.values[0])
    both = torch.stack([a.values[:, done].flatten(), b.values[:, done].flatten()])
    return float(torch.corrcoef(both)[0, 1])


if __name__ == "__main__":
    main()
