import torch

from protopfaith.shapley.estimators.kernel import constrained_solution, paired_coalitions
from protopfaith.shapley.sampling import Generators


def test_coalitions_come_with_their_complements():
    coalitions = paired_coalitions(0, 500, 9, Generators(torch.device("cpu"), 0))
    first, second = coalitions.chunk(2)
    assert torch.equal(first, ~second)
    sizes = torch.bincount(first.sum(1), minlength=10)
    assert sizes[0] == sizes[9] == 0
    assert int(sizes[1:9].min()) > 30


def test_the_solution_is_the_smallest_misfit_among_those_with_the_total():
    torch.manual_seed(0)
    x, y, total = torch.randn(30, 4).double(), torch.randn(30, 2).double(), torch.tensor([1.0, -2.0]).double()
    values, gap = constrained_solution(x.T @ x, x.T @ y, total)
    assert torch.allclose(values.sum(1), total)
    free = torch.linalg.lstsq(x, y).solution
    assert torch.allclose(gap, free.sum(0) - total)

    def misfit(values):
        return (y - x @ values.T).square().sum()

    for _ in range(20):
        step = 0.1 * torch.randn(2, 4).double()
        assert misfit(values + step - step.mean(1, keepdim=True)) > misfit(values)
