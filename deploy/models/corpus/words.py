"""Pools of words, and made-up ones so that copying is learned, not recalled."""

# ruff: noqa: SIM905 - a pool of words reads better as a line of words

from collections.abc import Sequence
from random import Random

FIRST_NAMES = (
    "Anna Ben Carla David Elena Felix Greta Hugo Iris Jonas Karin Leo Maria Nils Olga Paul "
    "Quinn Rosa Simon Tara Ulrich Vera Walter Xenia Yusuf Zoe Amir Bianca Cedric Dalia Emil "
    "Fatima Goran Hanna Ivan Julia Kofi Lara Mateo Nadia Omar Priya Rafael Sofia Tomas Ursula "
    "Viktor Wanda Aisha Bruno"
).split()
LAST_NAMES = (
    "Adler Berg Castillo Dahl Evans Fischer Garcia Hansen Ito Jensen Keller Larsen Moreau "
    "Novak Okafor Petrov Quist Rossi Silva Tanaka Ueda Vogel Weber Xu Young Zimmer Andersen "
    "Baker Costa Dubois Eriksson Farkas Gruber Hoffman Ivanov Jones Kim Lopez Meyer Nguyen "
    "Olsen Park Reyes Schmidt Torres"
).split()
CITIES = (
    "Berlin Paris Madrid Oslo Rome Vienna Prague Lisbon Dublin Helsinki Warsaw Athens Zurich "
    "Geneva Munich Hamburg Lyon Porto Milan Turin Boston Chicago Denver Seattle Toronto "
    "Sydney Tokyo Osaka Kyoto Seoul Delhi Mumbai Cairo Nairobi Lagos Lima Bogota Quito Havana "
    "Bergen Malmo Ghent Bristol Leeds"
).split()
JOBS = (
    "nurse teacher engineer baker pilot lawyer painter farmer dentist plumber chemist editor "
    "librarian carpenter designer translator geologist electrician musician architect"
).split()
PRODUCTS = (
    "lamp chair desk keyboard monitor kettle mug backpack tent bicycle helmet camera tripod "
    "notebook printer router speaker drill hammer ladder blanket pillow mirror clock vase "
    "carpet stove fan scarf jacket"
).split()
COLORS = "red blue green black white yellow purple orange grey brown silver pink".split()
LANGUAGES = (
    "English French German Spanish Italian Polish Dutch Greek Arabic Hindi Korean Japanese "
    "Swahili Turkish"
).split()
TOPICS = (
    "robotics gardening databases painting cooking astronomy cycling photography compilers "
    "networks pottery chess history biology statistics sailing"
).split()
STREETS = (
    "Main Oak River Hill Lake Park Mill Church Garden Station Forest Bridge Market School Harbor"
).split()
MONTHS = (
    "January February March April May June July August September October November December"
).split()
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
ANIMALS = "fox owl bear otter hare wolf crow deer mouse heron badger lynx turtle sparrow".split()
THINGS = "lantern map key boat drum mirror kite bell coin rope letter apple book stone".split()
PLACES = "forest harbor meadow village mountain river castle garden island market".split()
ADJECTIVES = "old small quiet bright heavy cheap narrow clean warm broken empty simple".split()
CODE_NOUNS = (
    "price total count name user item value rate index size width height weight score limit "
    "offset amount length level speed angle token state order color label path line page date "
    "code key"
).split()
CODE_VERBS = (
    "get set load save parse read write build send check find update make add remove count"
).split()
CN_SURNAMES = "王李张刘陈杨黄赵吴周徐孙马朱胡林"
CN_GIVEN = "伟芳娜敏静丽强磊军洋勇艳杰涛明超霞平刚华"
CN_CITIES = "北京 上海 广州 深圳 杭州 南京 武汉 成都 西安 苏州 天津 重庆 青岛 厦门 长沙".split()
CN_JOBS = "医生 老师 工程师 司机 护士 律师 厨师 画家 记者 会计".split()
CN_PRODUCTS = "台灯 椅子 键盘 背包 相机 水壶 帐篷 耳机 手表 雨伞 书桌 地毯".split()

_ONSETS = "b c d f g h k l m n p r s t v w z br dr kr st tr pl gr sh".split()
_VOWELS = "a e i o u ai or en".split()


def made_up(rng: Random) -> str:
    """A word of two or three syllables that no pool holds."""
    return "".join(rng.choice(_ONSETS) + rng.choice(_VOWELS) for _ in range(rng.randint(2, 3)))


def pick(rng: Random, pool: Sequence[str], rare: float = 0.01) -> str:
    """A word of the pool, now and then a made-up one in the same case; numbers stay numbers."""
    word = rng.choice(pool)
    if word.isdigit() or rng.random() >= rare:
        return word
    return made_up(rng).capitalize() if word[0].isupper() else made_up(rng)


def full_name(rng: Random) -> str:
    """First and last name."""
    return f"{pick(rng, FIRST_NAMES)} {pick(rng, LAST_NAMES)}"


def chinese_name(rng: Random) -> str:
    """A surname and a given name of one or two characters."""
    return rng.choice(CN_SURNAMES) + "".join(rng.choices(CN_GIVEN, k=rng.randint(1, 2)))


def day(rng: Random) -> str:
    """A date such as `14 March 2027`."""
    return f"{rng.randint(1, 28)} {rng.choice(MONTHS)} {rng.randint(2020, 2032)}"


def several(rng: Random, pool: list[str], low: int, high: int) -> list[str]:
    """Distinct words of the pool."""
    return rng.sample(pool, rng.randint(low, high))


def spoken_list(words: list[str], conjunction: str = "and") -> str:
    """`a, b and c`."""
    if len(words) == 1:
        return words[0]
    return ", ".join(words[:-1]) + f" {conjunction} " + words[-1]


def with_article(word: str) -> str:
    """`a fox`, `an owl`."""
    return ("an " if word[0] in "aeiou" else "a ") + word
