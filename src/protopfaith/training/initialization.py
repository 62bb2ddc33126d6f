"""Prototypes that start on real latent vectors of their class instead of at random."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from protopfaith.data import Preprocessing
from protopfaith.network import PatchNetwork
from protopfaith.training.batches import ImageBatches

IMAGES_PER_CLASS = 64
TELLING_SHARE = 0.1  # of an image's positions, for evidence


@torch.no_grad()
def patch_prototypes(
    model: PatchNetwork,
    batches: ImageBatches,
    preprocessing: Preprocessing,
    generator: torch.Generator,
    head: nn.Linear | None = None,
    *,
    owners: Tensor | None = None,
) -> Tensor:
    """New prototypes (P x L): for each class, latent vectors near the centers of its K clusters.

    With the plain classifier's `head` only the patches that speak most for the class take part: those where
    head weight times encoder feature (its class activation map) is largest. `owners` (P) are classes to start
    from for prototypes that belong to none.
    """
    training = model.training
    model.eval()
    prototypes = model.prototypes.detach().clone()
    owners = model.prototype_classes if owners is None else owners.to(prototypes.device)
    for label in range(len(model.class_names)):
        members = (owners == label).nonzero().flatten()
        images = (batches.labels == label).nonzero().flatten().cpu()
        if len(images) == 0 or len(members) == 0:
            continue
        images = images[torch.randperm(len(images), generator=generator)[:IMAGES_PER_CLASS]]
        vectors = _class_vectors(model, batches, preprocessing, images=images, label=label, head=head)
        seed = int(torch.randint(2**31, (), generator=generator))
        prototypes[members] = spread_out(vectors, len(members), seed)
    model.train(training)
    return prototypes


def _class_vectors(
    model: PatchNetwork,
    batches: ImageBatches,
    preprocessing: Preprocessing,
    *,
    images: Tensor,
    label: int,
    head: nn.Linear | None,
) -> Tensor:
    """Latent vectors (M x L) of some images of one class."""
    vectors = []
    for pixels, _ in batches.batches(list(images.split(64))):
        features = model.encoder(preprocessing.normalize(pixels))
        z = model.features(features).flatten(2).transpose(1, 2)
        if head is not None:
            evidence = torch.einsum("bchw,c->bhw", features, head.weight[label]).flatten(1)
            best = evidence.topk(max(1, round(TELLING_SHARE * evidence.shape[1])), dim=1).indices
            z = z.gather(1, best[:, :, None].expand(-1, -1, z.shape[2]))
        vectors.append(z.flatten(0, 1).float())
    return torch.cat(vectors)


def spread_out(vectors: Tensor, count: int, seed: int) -> Tensor:
    """`count` of the `vectors` (M x L) that lie nearest to the centers of as many clusters (k-means)."""
    from sklearn.cluster import KMeans

    unique = vectors.unique(dim=0)
    count_found = min(count, len(unique))
    means = KMeans(count_found, n_init=1, random_state=seed).fit(unique.cpu().numpy()).cluster_centers_
    centers = torch.from_numpy(means).to(unique)
    picked = unique[torch.cdist(centers, unique).argmin(dim=1)]
    # Fewer different vectors than prototypes: start over from the first.
    return picked[torch.arange(count, device=picked.device) % count_found]
