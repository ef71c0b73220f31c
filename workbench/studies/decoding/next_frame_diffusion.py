"""Next-Frame Diffusion: frames of a game by diffusion, some made before their action is told."""

from engine.diffusion.frames.model import SHIPPED
from engine.diffusion.frames.run import FramesConfig, run
from workbench.studies.decoding._next_frame_diffusion import (
    LOST,
    as_good,
    at,
    at_steps,
    few_steps,
    fewer_passes,
    frame_rate,
    over_fewer_steps,
    same_frames,
)
from workbench.study import Break, Claim, Regime, Reported, Study, Taught

FRAMES = Taught({"weights": SHIPPED})  # teacher and distilled
KEEPS = Break(
    {"fault": "keeps"},
    mechanism=True,
    why="frames of a wrong guess are kept: they answer an action that nobody told",
)
WAITS = Break(
    {"lag": 4},
    mechanism=True,
    why="a speculative frame waits until the one before it is clean: no pass has two frames",
)

STUDY = Study(
    slug="next-frame-diffusion",
    driver=run,
    config=FramesConfig(),
    views=("frames", "request_lanes", "page_map", "levels"),
    about=(
        "A model shows a game: told an action, it makes the next frame out of noise in a few "
        "steps, all of the frame at once, seeing the frames before it. A player mostly holds a key "
        "down, so while a frame is being made the next ones are begun for the same action and go "
        "through the same passes. If that action comes, they are nearly done; if another comes, "
        "they and their keys and values are thrown away. The game is Catch on 8 × 8 cells: what "
        "may follow a frame is known exactly. Frames are rows of the serving engine's steps: each "
        "has a lane, and what is kept of it lies on pages of the cache, an owner for each frame."
    ),
    tries=(
        ("No speculation", {"ahead": 0}),
        ("A player who never holds a key", {"held": 0.0}),
        ("Wrong guesses are kept", {"fault": "keeps"}),
    ),
    presets={
        "alone": {"ahead": 0},
        "clean": {"ahead": 0, "lag": 4},
        "teacher": {"model": "teacher"},
    },
    claims=(
        Claim(
            id="same-frames",
            sentence="Frames are the same with speculation as without, whatever the actions.",
            paper="discard speculatively generated frames if the input action differs (abstract)",
            grade="exact",
            check=same_frames,
            reported=Reported(0.0, "equal", unit="frames that differ"),
            finding="reproduced",
            why="a frame depends on actions up to its own and on its own noise, not on when it is "
            "computed",
            broken=(
                KEEPS,
                Break(
                    {"fault": "resumes"},
                    mechanism=True,
                    why="a frame of a wrong guess goes on half made, under the right action",
                ),
            ),
        ),
        Claim(
            id="fewer-passes",
            sentence="A player waits for fewer passes of the model than without speculation.",
            paper="adjacent frames often share the identical action input (abstract)",
            grade="measured",
            check=fewer_passes,
            reported=Reported(1.0, none=1.0, unit="×"),
            finding="reproduced",
            why="a direction, with as many steps of a frame; how often an action is held is our "
            "choice, and the map's",
            broken=(WAITS,),
        ),
        Claim(
            id="over-fewer-steps",
            sentence="A player waits for fewer passes than without speculation in as few steps as "
            "make frames as good.",
            paper="not held against: this project's own condition, the strongest plain rival; "
            "distillation makes few steps enough (abstract)",
            grade="measured",
            taught=FRAMES,
            check=over_fewer_steps,
            reported=Reported(1.0, none=1.0, unit="×"),
            finding="contrary",
            quick="reproduced",
            fails=("full",),
            why="distilled, one step is enough where frames wait: 82.8% of them are allowed "
            "beside 77.8% with speculation in four steps (60 games of 64 frames), for 1 pass a "
            "frame beside 1.4. In 60 other games 89.9% beside 77.6%. Five short games of the small "
            "check ask for two steps. Of five trainings four come to 0.69×; of the fifth, whose "
            "frames are as good with speculation as without (98.8% allowed, 98.4%), no fewer steps "
            "do and it is 2.76×. So it is undecided of five (1.11 [-0.04, 2.25]), contrary of the "
            "shipped one (0.69 [0.68, 0.71])",
            broken=(WAITS,),
        ),
        Claim(
            id="frame-rate",
            sentence="More frames a second are shown than without speculation.",
            paper="to fully leverage parallel computation (abstract); its gain is not stated there",
            grade="measured",
            timed=True,
            check=frame_rate,
            reported=Reported(1.0, none=1.0, unit="×"),
            finding="reproduced",
            why="a direction, with as many steps of a frame; a pass of four very small frames "
            "takes hardly longer than one of one. Frames that wait and take one step, which are as "
            "good, are shown after 0.69 of the passes, each smaller (the claim before)",
            broken=(WAITS,),
        ),
        Claim(
            id="as-good",
            sentence="Frames begun before the last one is clean are as good as those that wait.",
            paper="beats autoregressive baselines in visual quality (abstract), speculating",
            grade="measured",
            taught=FRAMES,
            check=as_good,
            reported=Reported(-LOST, none=None, unit="%"),
            finding="undecided",
            fails=("small", "full"),
            why="this project's own condition, a twentieth ours: how the paper's frames see those "
            "being made beside them is not in its abstract. They are worse for certain, by more "
            "than a twentieth or not: after one frame that is none of the game's the rest of a "
            "game is often wrong. Of 200 other games of 16 frames it is 1.7 points [0.8, 2.9]; a "
            "first wrong frame comes nearly three times as often (1.3% of frames against 0.4%)",
            broken=(KEEPS,),
        ),
        Claim(
            id="few-steps",
            sentence="Distilled, four steps make better frames than the teacher's four.",
            paper="consistency distillation enables efficient inference with few steps (abstract)",
            grade="measured",
            taught=FRAMES,
            check=few_steps,
            reported=Reported(0.0, none=0.0, unit="%"),
            finding="undecided",
            fails=("small", "full"),
            why="games decide, not frames: in a few of either model's a frame is none of the "
            "game's and the rest is lost; in 60 games 87.0% are allowed beside 92.1%. It is a "
            "matter of steps: in one and two it is 77 and 51 points ahead of a teacher of as many, "
            "in eight and sixteen 9 and 10 behind, contrary (map). In 20 other games of 16 frames, "
            "as its folder says, the distilled one errs less in one, two and four steps; these do "
            "not confirm it. Of five trainings the other four allow more than "
            "their teachers, by 3.1 to 7.4 points: in the mean 2.9 [-7.3, 13.0], undecided, too",
            broken=(
                Break(
                    {"fault": "blind"},
                    mechanism=True,
                    why="a frame does not see the ones before it: nothing kept of them is read",
                ),
            ),
        ),
    ),
    regimes=(
        Regime(
            claim="fewer-passes",
            knob="held",
            values=(0.0, 0.25, 0.5, 0.75, 0.9, 1.0),
            coarse=(0.0, 0.9),
            x="probability that a player holds the action",
            y="passes a frame without speculation over with (×)",
            default=0.8,
            judged=at("held", fewer_passes),
            series={
                "3 frames ahead": {"ahead": 3},
                "1 frame ahead": {"ahead": 1},
                "3 ahead, lag 2": {"ahead": 3, "lag": 2},
            },
        ),
        Regime(
            claim="as-good",
            knob="lag",
            values=(1, 2, 3, 4),
            coarse=(1, 4),
            x="steps that a frame stays behind the one before it",
            y="frames allowed, less those that saw clean frames",
            default=1,
            noun="steps",
            judged=at("lag", as_good),
            series={"distilled": {}, "teacher": {"model": "teacher"}},
        ),
        Regime(
            claim="few-steps",
            knob="steps",
            values=(1, 2, 4, 8, 16),
            coarse=(1, 4),
            x="sampling steps",
            y="frames allowed, less the teacher's",
            default=4,
            log_x=True,
            noun="steps",
            judged=at_steps,
        ),
        Regime(
            claim="over-fewer-steps",
            knob="held",
            values=(0.5, 0.8, 0.9, 1.0),
            coarse=(0.5, 0.9),
            x="probability that a player holds the action",
            y="passes a frame of the fewest steps that are as good over ours (×)",
            default=0.8,
            judged=at("held", over_fewer_steps),
        ),
        Regime(
            claim="frame-rate",
            knob="held",
            values=(0.0, 0.25, 0.5, 0.8, 0.9, 1.0),
            coarse=(0.0, 0.8),
            x="probability that a player holds the action",
            y="frames a second over those without speculation (×)",
            default=0.8,
            judged=at("held", frame_rate),
        ),
    ),
    limits=(
        "The paper's abstract alone was read: how its speculative frames see one another is our "
        "reading, a staircase in which each stays some steps behind the one before it, chosen so "
        "that frames do not depend on the guess. One teacher and one distilled model of 154,000 "
        "weights on one game of 8 × 8 cells, whose rows are the tokens: there is no image "
        "tokenizer and no autoregressive rival, and the paper's 30 frames a second of 310 million "
        "weights on an A100 are not tried. Intervals are over games, not over trainings. Frames "
        "are rounded to cells before they are seen again, but from a frame that is none of the "
        "game's the model seldom finds back: it was not trained on its own errors. What noise "
        "level it is told matters little to the distilled model: told none, it still made 70% of "
        "frames right where 84% were (5 games of 16 frames). Every action is told as soon as the "
        "frame before it is shown."
    ),
)
