import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.network import ENCODERS
from protopfaith.training import Recipe, load_recipe, recipe_names, recipe_summary
from protopfaith.training.recipe import decisive, flatten, recipe_from_dict


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_of_the_package_is_valid_and_survives_saving(name, tmp_path):
    recipe = load_recipe(name)
    assert recipe.model.encoder in ENCODERS
    assert recipe_summary(name)
    recipe.save(tmp_path / "recipe.yaml")
    assert load_recipe(tmp_path / "recipe.yaml") == recipe


def test_the_paper_s_settings():
    for name in ("cub", "dogs"):
        recipe = load_recipe(name)
        assert (recipe.optimization.learning_rate, recipe.optimization.weight_decay) == (0.00022, 0.001)
        assert (recipe.model.prototypes_per_class, recipe.model.prototype_channels) == (5, 128)
        assert (recipe.augmentation.rotation, recipe.augmentation.shear, recipe.augmentation.flip) == (
            25,
            15,
            0.5,
        )
        assert recipe.model.weights == "imagenet"
    for name, rate, channels in (("rsna_convnet", 0.0001, 256), ("rsna_resnet", 0.00022, 512)):
        recipe = load_recipe(name)
        assert (recipe.optimization.learning_rate, recipe.optimization.weight_decay) == (rate, 0)
        assert (recipe.model.prototypes_per_class, recipe.model.prototype_channels) == (7, channels)
        assert recipe.schedule.pretraining.learning_rate == 0.001
        assert (recipe.augmentation.rotation, recipe.augmentation.translation) == (45, 0.15)
        assert recipe.augmentation.scale == (0.85, 1.15)
    for name in ("cub", "dogs", "rsna_convnet", "rsna_resnet"):
        recipe = load_recipe(name)
        assert recipe.model.initialization == "random"
        assert not recipe.projection.distinct
        assert (recipe.costs.cluster, recipe.costs.separation, recipe.costs.per_prototype) == (
            0.5,
            0.5,
            False,
        )


def test_every_value_can_be_overridden():
    overrides = [
        "seed=7",
        "data.root=some/folder",
        "data.options.train=16",
        "optimization.multipliers.encoder=1e-2",
        "schedule.patience=null",
        "augmentation.scale=[0.5, 2]",
        "projection.distinct=true",
    ]
    recipe = load_recipe("birds", overrides)
    assert recipe.seed == 7
    assert recipe.data.root == "some/folder"
    assert recipe.data.options == {"train": 16}
    assert recipe.optimization.multipliers.encoder == 0.01
    assert recipe.schedule.patience is None
    assert recipe.augmentation.scale == (0.5, 2.0)
    assert recipe.projection.distinct


@pytest.mark.parametrize("text", ["2024", "true", "a: b", "[broken", "0.5"])
def test_text_stays_text_whatever_it_looks_like(text):
    assert load_recipe("birds", [f"data.root={text}"]).data.root == text


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("optimization.lerning_rate=1", ["'optimization.lerning_rate'", "did you mean 'learning_rate'"]),
        ("modle.encoder=small", ["'modle'", "did you mean 'model'"]),
        ("optimization.learning_rate=fast", ["'optimization.learning_rate'", "a finite number", "'fast'"]),
        ("optimization.learning_rate=0", ["more than 0"]),
        ("optimization.batch_size=0", ["at least 1"]),
        ("schedule.warmup.end=2", ["'schedule.warmup.end'", "at most 1"]),
        ("compute.precision=bf16", ["'compute.precision'", "did you mean 'bf16-mixed'"]),
        ("data=3", ["'data'", "keys and values"]),
        ("data.options=2", ["'data.options'", "a mapping", "2"]),
        ("seed", ["section.key=value"]),
        ("seed.deep=1", ["'seed.deep=1'", "one value"]),
    ],
)
def test_typos_are_named_with_the_nearest_key(override, words):
    with pytest.raises(ProtoPFaithError) as caught:
        recipe_from_dict({"seed": 0}, [override])
    for word in words:
        assert word in str(caught.value)


def test_missing_and_broken_files(tmp_path):
    with pytest.raises(ProtoPFaithError, match="did you mean 'birds'"):
        load_recipe("brids")
    with pytest.raises(ProtoPFaithError, match="no recipe file"):
        load_recipe(tmp_path / "none.yaml")
    (tmp_path / "broken.yaml").write_text("a: [1,")
    with pytest.raises(ProtoPFaithError, match="not valid YAML"):
        load_recipe(tmp_path / "broken.yaml")
    (tmp_path / "text.yaml").write_text("just a text")
    with pytest.raises(ProtoPFaithError, match="must hold keys and values, not 'just a text'"):
        load_recipe(tmp_path / "text.yaml", ["seed=1"])
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(ProtoPFaithError, match=r"picture\.png is not a text file"):
        load_recipe(tmp_path / "picture.png")
    (tmp_path / "empty.yaml").write_text("")
    assert load_recipe(tmp_path / "empty.yaml") == Recipe()


def test_a_recipe_on_another(tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "base: cub_quick\nschedule: {cycles: 7, joint: {epochs: 3}}\noptimization: {multipliers: {head: 2}}\n"
    )
    mine, theirs = load_recipe(tmp_path / "mine.yaml", ["seed=5"]), load_recipe("cub_quick")
    assert mine.schedule.cycles == 7
    assert mine.schedule.joint.epochs == 3
    assert mine.schedule.joint.base == theirs.schedule.joint.base
    assert mine.optimization.multipliers.features == theirs.optimization.multipliers.features
    assert mine.costs == theirs.costs
    (tmp_path / "again.yaml").write_text(f"base: {tmp_path / 'again.yaml'}\n")
    with pytest.raises(ProtoPFaithError, match="name a base that has none"):
        load_recipe(tmp_path / "again.yaml")
    (tmp_path / "none.yaml").write_text("base: nothing\n")
    with pytest.raises(ProtoPFaithError, match="no recipe named 'nothing'"):
        load_recipe(tmp_path / "none.yaml")


@pytest.mark.parametrize("name", ["cub_quick", "dogs_quick", "folder"])
def test_the_family_differs_in_what_must(name):
    """The head, its costs and the course of training are the same for all data."""
    family, recipe = load_recipe("quick"), load_recipe(name)
    assert recipe.costs == family.costs
    assert recipe.projection == family.projection
    assert recipe.model.activation == family.model.activation
    assert recipe.schedule.joint == family.schedule.joint
    assert recipe.schedule.cycles == family.schedule.cycles


def test_dotted_keys() -> None:
    assert flatten({"a": {"b": {"c": 1}, "d": {}}, "e": 2}) == {"a.b.c": 1, "a.d": {}, "e": 2}


def test_where_and_how_it_computes_decides_nothing():
    recipe = load_recipe("birds")
    elsewhere = load_recipe("birds", ["data.root=elsewhere", "compute.workers=0"])
    assert decisive(recipe) == decisive(elsewhere)
    assert decisive(recipe) != decisive(load_recipe("birds", ["seed=1"]))


def test_a_value_may_go_into_a_section_that_was_given_as_a_whole() -> None:
    found = load_recipe("birds", ["data={}", "data.size=[32,32]"]).data
    assert (found.size, found.seed) == ((32, 32), 0)
