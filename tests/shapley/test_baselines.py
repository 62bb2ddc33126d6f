import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley import BASELINES, Game, make_baseline

IMAGE = torch.randn(3, 16, 20, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", sorted(BASELINES))
def test_every_baseline_is_an_image_of_equal_shape(name):
    options = {"mean": {"value": [0.1, 0.2, 0.3]}, "image": {"value": IMAGE + 1}}.get(name, {})
    baseline, description = make_baseline(name, IMAGE, **options)
    assert baseline.shape == IMAGE.shape
    assert baseline.dtype == IMAGE.dtype
    assert description.startswith(name)


def test_zero_and_colors():
    assert not make_baseline("zero", IMAGE)[0].any()
    assert torch.equal(make_baseline(0.5, IMAGE)[0], torch.full_like(IMAGE, 0.5))
    by_name, _ = make_baseline("color:0,0.5,1", IMAGE)
    by_value, _ = make_baseline([0, 0.5, 1], IMAGE)
    assert torch.equal(by_name, by_value)
    assert by_name[2].eq(1).all()


def test_the_mean_is_a_color_or_an_image():
    mean_image = torch.rand_like(IMAGE)
    assert torch.equal(make_baseline("mean", IMAGE, value=mean_image)[0], mean_image)
    assert make_baseline("mean", IMAGE, value=(1, 2, 3))[0][1].eq(2).all()
    with pytest.raises(ProtoPFaithError, match="needs the data set's mean"):
        make_baseline("mean", IMAGE)


def test_blur_smooths_and_keeps_constants():
    gentle, strong = make_baseline("blur:1", IMAGE)[0], make_baseline("blur:4", IMAGE)[0]
    assert strong.std() < gentle.std() < IMAGE.std()
    assert torch.allclose(make_baseline("blur", torch.ones(1, 5, 9))[0], torch.ones(1, 5, 9))


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("blurr", "did you mean 'blur'"),
        ("blur:much", "cannot be read"),
        ("blur:0", "above zero"),
        ("zero:3", "takes no numbers"),
        ([1.0, 2.0], "one per channel"),
        (torch.zeros(3, 4, 4), "equal shape"),
    ],
)
def test_bad_baselines_are_refused_in_one_sentence(spec, complaint):
    with pytest.raises(ProtoPFaithError, match=complaint):
        make_baseline(spec, IMAGE)


@pytest.mark.parametrize(
    ("baseline", "words"),
    [
        (lambda image: image / {}["white"], r"The baseline 'mine' fails with KeyError: 'white' \(line"),
        (lambda image: None, "What the baseline 'mine' gives must be an image, not None"),
    ],
)
def test_a_baseline_of_somebody_else_that_fails_is_told_as_that(baseline, words, monkeypatch):
    monkeypatch.setitem(BASELINES, "mine", baseline)
    with pytest.raises(ProtoPFaithError, match=words):
        make_baseline("mine", torch.zeros(3, 4, 4))


@pytest.mark.parametrize(
    ("baseline", "options", "words"),
    [
        ("blur", {"sigma": "x"}, "sigma of a blur must be a number, not 'x'"),
        ("blur", {"sigma": [1, 2]}, "sigma of a blur must be a number"),
        ("color", {"value": "red"}, "value of the baseline 'color' must be a number.*'red'"),
        ("color", {"value": ["a", "b", "c"]}, "value of the baseline 'color' must be a number"),
        ("mean", {"value": "x"}, "value of the baseline 'mean' must be a number"),
        ("mean", {"image": 3}, "has no option 'image'; it takes value"),
        ("zero", {1: 2}, "has no option 1; it takes none"),
        (0.5, {"sigma": 3}, "Options such as 'sigma' are for a baseline that is named"),
    ],
)
def test_options_that_make_no_sense_are_told(baseline, options, words):
    image = torch.rand(3, 8, 8)
    with pytest.raises(ProtoPFaithError, match=words):
        Game(lambda x: x.sum((1, 2, 3)), image, 4, baseline, baseline_options=options)


def test_an_option_that_is_none_is_as_if_it_were_not_given():
    image = torch.rand(3, 8, 8)
    (usual, _), (found, words) = make_baseline("blur", image), make_baseline("blur", image, sigma=None)
    assert torch.equal(usual, found)
    assert words == "blur"
