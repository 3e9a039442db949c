"""Reaching: one state line in, one chunk of action tokens out."""

from random import Random

from deploy.models.corpus.example import Example, Plain

AXES = "xyz"
FASTEST = 4
STEPS = 5
LARGEST = 30
OPEN, GRIP = "[open]", "[grip]"


def move_token(axis: str, speed: int) -> str:
    """The readable token of one axis move, such as `[x+3]`."""
    return f"[{axis}{speed:+d}]"


ACTION_TOKENS = [
    move_token(axis, speed) for axis in AXES for speed in range(-FASTEST, FASTEST + 1)
] + [OPEN, GRIP]

_PROMPTS = (
    "Gripper at ({position}), target is ({offset}) away. Next actions:",
    "Move the gripper by ({offset}).",
    "state: position {position}; offset {offset}; give the action chunk.",
)


def axis_speed(remaining: int) -> int:
    """A proportional controller: half the remaining way, rounded up, at most FASTEST."""
    half = (abs(remaining) + 1) // 2
    return min(half, FASTEST) * (1 if remaining >= 0 else -1)


def controller_chunk(position: tuple[int, ...], target: tuple[int, ...]) -> list[str]:
    """STEPS moves of all axes, then the gripper's state: closed if the target was reached."""
    here, tokens = list(position), []
    for _ in range(STEPS):
        for index, axis in enumerate(AXES):
            speed = axis_speed(target[index] - here[index])
            here[index] += speed
            tokens.append(move_token(axis, speed))
    return [*tokens, GRIP if tuple(here) == target else OPEN]


def draw(rng: Random) -> Example:
    """A reach whose distance on each axis is at most 16."""
    position = tuple(rng.randint(0, LARGEST) for _ in AXES)
    target = tuple(min(LARGEST, max(0, p + rng.randint(-16, 16))) for p in position)
    offset = ", ".join(f"{b - a:+d}" for a, b in zip(position, target, strict=True))
    place = ", ".join(map(str, position))
    prompt = rng.choice(_PROMPTS).format(position=place, offset=offset)
    answer = "".join(controller_chunk(position, target))
    return Example("action", "TASK_ACTION_CONTROL", Plain(prompt), answer, "action")
