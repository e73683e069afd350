"""The full-screen debugger: timeline, event, context and findings around one stepper, and a command line.

Keys move the stepper. The command line takes every verb of the prompt; the prompt's session carries it out.
Both run in a thread, so that a long search can be stopped. While it runs, no pane reads the stepper.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import Key
from textual.suggester import Suggester
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from ...debugger.run_findings import run_findings
from ...debugger.stepper import Move, Stepper
from ...errors import ReenactError
from ...recording.event_addresses import failure_of
from ...tracefile import status as states
from ...tracefile.events.text import clean
from ..repl.keyboard import completions
from ..repl.session import Session, Verbs
from . import panes
from .captured import CapturedOutput
from .timeline import Timeline

_EVERY = 0.5
"""Seconds between two looks whether the file has grown."""

Job = Callable[[], Callable[[], None]]
"""Done in a thread; what it returns is called where widgets may be changed."""

_PANES = ("event", "context", "findings")


class Stopped(Exception):
    """The user stopped a search."""


class Completed(Suggester):
    """Completes the word under the cursor as the Tab key of the prompt does."""

    def __init__(self, session: Session, is_busy: Callable[[], bool]) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._session = session
        self._is_busy = is_busy

    async def get_suggestion(self, value: str) -> str | None:
        if self._is_busy():
            return None
        before, _, word = value.rpartition(" ")
        before = f"{before} " if before or value.startswith(" ") else ""
        try:
            words = completions(self._session, before, word) if value.strip() else []
        except ReenactError:  # no event yet
            return None
        return before + words[0] if words else None


class CommandLine(Input):
    """One line for a verb; it is empty again at once, so that what is typed next is a line of its own."""

    async def _on_key(self, event: Key) -> None:
        if event.key != "enter":
            await super()._on_key(event)
            return
        event.stop()  # a binding would be looked up after the keys that follow
        line, self.value = self.value, ""
        self.post_message(self.Submitted(self, line))


class DebugApp(App[int]):
    """One run on the whole screen."""

    CSS_PATH = "tui.tcss"
    TITLE = "reenact"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [
        (0, "-narrow"),
        (120, "-wide"),
    ]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "step(1)", "step", key_display="j/k"),
        Binding("up,k", "step(-1)", "back", show=False),
        Binding("n", "lane(1)", "lane", key_display="n/p"),
        Binding("p", "lane(-1)", "lane back", show=False),
        Binding("right_square_bracket", "turn(1)", "turn", key_display="[ ]"),
        Binding("left_square_bracket", "turn(-1)", "turn back", show=False),
        Binding("c", "run(1)", "continue", key_display="c/C"),
        Binding("C", "run(-1)", "reverse", show=False),
        Binding("e", "failure", "failure"),
        Binding("g,home", "go('first')", "first", show=False),
        Binding("G,end", "go('last')", "last", show=False),
        Binding("backspace", "retrace(-1)", "where I was", show=False),
        Binding("pagedown", "page(1)", "page", show=False),
        Binding("pageup", "page(-1)", "page back", show=False),
        Binding("slash", "type('/')", "search", priority=True),
        Binding("colon", "type('')", "command", priority=True),
        Binding("tab", "pane(1)", "pane", priority=True),
        Binding("shift+tab", "pane(-1)", "pane back", show=False, priority=True),
        Binding("d", "only_new", "new only"),
        Binding("F", "follow", "follow", show=False),
        Binding("question_mark", "type('h')", "help", key_display="?", priority=True),
        Binding("escape", "leave", "stop", show=False),
        Binding("q", "quit", "quit"),
    ]

    def __init__(self, stepper: Stepper, verbs: Verbs) -> None:
        super().__init__()
        self._out = CapturedOutput()
        self.stepper = stepper
        self.session = Session(stepper, verbs, self._out)
        self.session.runs_command = self._run_outside
        stepper.on_progress = self._show_progress
        self._jobs: deque[Job] = deque()
        self.is_busy = False
        self._wants_stop = False
        self._pane = "event"
        self._only_new = False
        self._found: Sequence[tuple[str, str]] = ()
        self._follows = False
        self._typed: list[str] = []
        self._typed_at = 0

    def compose(self) -> ComposeResult:
        yield Static(id="head")
        with Horizontal(id="main"):
            yield Timeline(self.stepper, lambda: self.is_busy)
            with Vertical(id="panes"):
                for name in _PANES[:2]:
                    with VerticalScroll(id=name) as pane:
                        pane.border_title = name
                        yield Static(id=f"{name}-text", markup=False)
                yield OptionList(id="findings")
        with VerticalScroll(id="output"):
            yield Static(id="output-text", markup=False)
        yield Static(id="note", markup=False)
        yield CommandLine(
            id="command",
            compact=True,
            placeholder="a verb of the prompt: b tool:search; c   (h lists them)",
            suggester=Completed(self.session, lambda: self.is_busy),
        )
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self.query_one("#findings", OptionList).border_title = "findings"
        self.query_one("#output").display = False
        self._choose("event")
        self.query_one(Timeline).focus()
        self.call_after_refresh(self._draw)
        self.call_after_refresh(self._work, self._find)
        self.set_interval(_EVERY, self._look_for_more)

    # drawing --------------------------------------------------------------------------------------

    def _draw(self) -> None:
        """Show where the cursor is in every pane; after the move if one is under way."""
        if self.is_busy:
            return
        self.query_one("#head", Static).update(panes.head_text(self.session, self.size.width))
        self.query_one(Timeline).show()
        if not self.stepper.events:
            return
        for name in _PANES[:2]:
            pane = self.query_one(f"#{name}", VerticalScroll)
            if pane.display:
                self._text(name).update(self._content(name, pane.scrollable_content_region.width))
                pane.scroll_home(animate=False)

    def _content(self, name: str, width: int) -> Text:
        if name == "event":
            return panes.event_text(self.session, width)
        return panes.context_text(self.session, width, only_new=self._only_new)

    def _text(self, name: str) -> Static:
        return self.query_one(f"#{name}-text", Static)

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def _say(self, text: str, style: str = "yellow") -> None:
        """Show one line above the command line; "" removes it."""
        note = self.query_one("#note", Static)
        note.update(Text(clean(text), style))
        note.display = bool(text)

    def _choose(self, name: str) -> None:
        """Show a pane; on a wide screen event and context stand there together."""
        self._pane = name
        for each in _PANES:
            self.query_one(f"#{each}").set_class(each == name, "-chosen")
        self.call_after_refresh(self._draw)

    # moving ---------------------------------------------------------------------------------------

    def _move(self, move: Callable[[], Move]) -> None:
        """Move in a thread; then show where the cursor is, and why there."""
        self._work(lambda: self._moved(move))

    def _moved(self, move: Callable[[], Move]) -> Callable[[], None]:
        try:
            made = move()
        except ReenactError as why:
            message = str(why)
            return lambda: self._say(message, "red")
        reasons = "; ".join(f"stopped by {reason.point.text}" for reason in made.reasons)
        return lambda: self._say(made.note or reasons)

    def _work(self, job: Job) -> None:
        """Do something with the stepper in a thread, one thing after the other."""
        self._jobs.append(job)
        if not self.is_busy:
            self._begin_next()

    def _begin_next(self) -> None:
        self.is_busy = bool(self._jobs)
        if self._jobs:
            self._wants_stop = False
            self._in_thread(self._jobs.popleft())

    @work(thread=True)
    def _in_thread(self, job: Job) -> None:
        shown: Callable[[], None] = lambda: None  # noqa: E731
        try:
            shown = job()
        except Stopped:
            shown = lambda: self._say("stopped")  # noqa: E731
        finally:
            self.call_from_thread(self._ended, shown)

    def _ended(self, shown: Callable[[], None]) -> None:
        shown()
        self._begin_next()
        if not self.is_busy:
            self._draw()

    def _show_progress(self, done: int, total: int) -> None:
        if self._wants_stop:
            raise Stopped
        if self.is_busy:
            part = min(100, 100 * done // max(total, 1))
            self.call_from_thread(self._say, f"looking … {part} % (Esc stops)", "dim")

    def action_step(self, direction: int) -> None:
        self._move(lambda: self.stepper.step(direction))

    def action_lane(self, direction: int) -> None:
        self._move(lambda: self.stepper.next(direction))

    def action_turn(self, direction: int) -> None:
        self._move(lambda: self.stepper.turn(direction))

    def action_run(self, direction: int) -> None:
        self._move(lambda: self.stepper.run(direction))

    def action_page(self, direction: int) -> None:
        def move() -> Move:
            made = Move(False)
            for _ in range(max(1, self.query_one(Timeline).size.height - 2)):
                made = self.stepper.step(direction)
                if not made.moved:
                    break
            return made

        self._move(move)

    def action_go(self, where: str) -> None:
        self._move(lambda: self.stepper.go(where))

    def action_retrace(self, direction: int) -> None:
        self._move(lambda: self.stepper.retrace(direction))

    def action_failure(self) -> None:
        failure = failure_of(self.stepper.recording)
        if failure is None or failure.index is None:
            self._say("This run did not fail.")
        else:
            self.action_go(f"#{failure.index}")

    @on(Timeline.Chosen)
    def _clicked(self, message: Timeline.Chosen) -> None:
        self.action_go(message.address)

    # panes ----------------------------------------------------------------------------------------

    def action_pane(self, direction: int) -> None:
        """Choose the next pane; on the command line complete the word."""
        command = self.query_one("#command", Input)
        if command.has_focus:
            command.action_cursor_right()  # at the end of the line it takes the suggestion
            return
        self._choose(_PANES[(_PANES.index(self._pane) + direction) % len(_PANES)])

    def action_only_new(self) -> None:
        self._only_new = not self._only_new
        self._say("context: only what is new since the request before" if self._only_new else "")
        self._choose("context")

    def _find(self) -> Callable[[], None]:
        found = run_findings(self.stepper.recording)
        return lambda: self._show_findings(found)

    def _show_findings(self, found: Sequence[tuple[str, str]]) -> None:
        options = self.query_one("#findings", OptionList)
        options.clear_options()
        for where, text in found:
            options.add_option(Option(Text.assemble((f"{where:>4} ", "bold"), clean(text))))
        if not found:
            options.add_option(Option("Nothing stands out in this run.", disabled=True))
        self._found = found
        self.query_one("#findings").set_class(bool(found), "-any")

    @on(OptionList.OptionSelected)
    def _finding_chosen(self, message: OptionList.OptionSelected) -> None:
        where = self._found[message.option_index][0]
        if where:
            self.action_go(where)

    # live -----------------------------------------------------------------------------------------

    def _look_for_more(self) -> None:
        if self.is_busy or self.stepper.recording.status != states.RUNNING:
            return

        def look() -> Callable[[], None]:
            if self.stepper.refresh() and self._follows:
                self.stepper.go("last")
            return lambda: None

        self._work(look)

    def action_follow(self) -> None:
        self._follows = not self._follows
        self._say(
            "following the run: the cursor stays at its end" if self._follows else "no longer following"
        )

    # the command line -----------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Where the command line is open, its keys are letters."""
        return action != "type" or not self.query_one("#command", Input).has_focus

    def action_type(self, text: str) -> None:
        """Open the command line at once: the keys that follow are typed into it."""
        command = self.query_one("#command", Input)
        command.value = text
        self.screen.set_focus(command)
        command.cursor_position = len(text)

    def action_leave(self) -> None:
        """Stop a search, else close what is open, else go back to the timeline."""
        self._jobs.clear()
        self._wants_stop = self.is_busy
        self.query_one("#output").display = False
        self._say("")
        self.query_one(Timeline).focus()

    def on_key(self, event: Key) -> None:
        command = self.query_one("#command", Input)
        if command.has_focus and event.key in ("up", "down") and self._typed:
            step = 1 if event.key == "down" else -1
            self._typed_at = max(0, min(len(self._typed) - 1, self._typed_at + step))
            command.value = self._typed[self._typed_at]
            command.cursor_position = len(command.value)

    @on(Input.Submitted)
    def _entered(self, message: Input.Submitted) -> None:
        line = message.value.strip().lstrip(":")  # typed where the command line is open already
        if line:
            self._typed.append(line)
            self._typed_at = len(self._typed)
        self._out.width = max(40, self.size.width - 6)  # the border, the padding, the scroll bar

        def obey() -> Callable[[], None]:
            self.session.do(line)
            text = self._out.taken()
            return lambda: self._show_output(text)

        self._work(obey)

    def _show_output(self, text: Text) -> None:
        if self.session.is_over:
            self.exit(0)
            return
        self._say("")
        output = self.query_one("#output", VerticalScroll)
        output.display = bool(text.plain.strip())
        output.border_subtitle = "Esc closes"
        self._text("output").update(text)
        output.scroll_home(animate=False)
        if not output.display:
            self.query_one(Timeline).focus()

    def _run_outside(self, command: Callable[[], int]) -> int:
        """Give the terminal to a command that asks and prints, then take it back."""

        def run() -> int:
            with self.suspend():
                code = command()
                try:
                    input("\nEnter returns to the debugger ")
                except (EOFError, KeyboardInterrupt):
                    pass
            return code

        return self.call_from_thread(run)
