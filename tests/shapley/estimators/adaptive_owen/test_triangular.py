import pytest
import torch

from protopfaith.shapley.estimators.adaptive_owen.triangular import SIDE, inverse_of_lower


def lower(*shape):
    """Cholesky roots of well-conditioned matrices."""
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return torch.linalg.cholesky(x @ x.mT / shape[-1] + 0.1 * torch.eye(shape[-1], dtype=torch.float64))


@pytest.mark.parametrize("m", [1, 2, SIDE - 1, SIDE, SIDE + 1, 2 * SIDE, 3 * SIDE + 5])
def test_it_is_the_inverse(m):
    root = lower(3, m, m)
    found = inverse_of_lower(root)
    assert found.shape == root.shape
    assert torch.allclose(found @ root, torch.eye(m, dtype=torch.float64).expand(3, m, m), atol=1e-10)
    assert torch.equal(found, found.tril())
    slow = torch.linalg.solve_triangular(root, torch.eye(m, dtype=torch.float64), upper=False)
    assert torch.allclose(found, slow, atol=1e-10)


def test_in_single_precision_it_is_as_near_as_substitution():
    root = lower(2, 5 * SIDE, 5 * SIDE)
    truth, single = inverse_of_lower(root), root.float()
    eye = torch.eye(5 * SIDE)
    ours = (inverse_of_lower(single) - truth).abs().max()
    theirs = (torch.linalg.solve_triangular(single, eye, upper=False) - truth).abs().max()
    assert ours < 3 * theirs


def test_more_dimensions_or_none():
    root = lower(2, 3, 9, 9)
    assert torch.allclose(inverse_of_lower(root)[1, 2], inverse_of_lower(root[1, 2]))
