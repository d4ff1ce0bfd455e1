"""program_text: a plan as one LLVM module, ready for the engine.

In: a `Plan`, a `Target` and the function that emits a kernel. Out: a `Program`: the module's text
with each distinct kernel once and the entry

    i32 @jl_entry(ptr %addresses, ptr %workspace, ptr %context)

`addresses`: arguments, then results. `workspace`: memory for the temporaries. `context`: the
address of the program's `Host`, then the addresses of the constants. It returns 0, or 1 at once if
a host call raised or a signal handler did, with the exception set. The entry is called with the
interpreter lock held; one that may take long gives it up, and asks for pending signals every so often
(`watch_code.py`): in loops, between steps, between the pieces of long copies, and within long kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from jaxlite.backends.cpu import entry_code, hostcall_code, products, watch_code
from jaxlite.backends.cpu.emit import emit_kernel, module_text
from jaxlite.backends.cpu.functions import Functions, KernelEmitter, chunk_of
from jaxlite.backends.cpu.image import ENTRY
from jaxlite.backends.cpu.polling import polls
from jaxlite.backends.cpu.target import Target
from jaxlite.compiler.plan import (
    Branch,
    Copy,
    Counter,
    Fill,
    For,
    HostCall,
    KernelCall,
    LibraryCall,
    MatrixProduct,
    Plan,
    Reference,
    Step,
    Stride,
    While,
    all_steps,
    block_work,
    step_work,
)

PART = 64  # steps of a function: a program of more has several
LONG_WORK = 50_000  # from here on the entry gives up the interpreter lock
UNPOLLED_WORK = 1 << 18  # loops and runs of steps below this go without looking at the clock


@final
@dataclass(frozen=True, eq=False)
class Program:
    """The texts and what running them needs: BLAS routines by name, the pool's functions if it runs
    `long`, the pool's threads if it splits work, host calls; the loops that it tells the progress of.

    `main` has the entry and most functions; `apart` are large kernels, by symbol."""

    main: str
    apart: Mapping[str, str]
    blas: tuple[str, ...]
    long: bool
    splits: bool
    host_calls: tuple[HostCall, ...]
    kernels: tuple[str, ...]
    loops: tuple[For | While, ...]

    @property
    def text(self) -> str:
        """All of it, for readers."""
        return "\n".join([*self.apart.values(), self.main])


def program_text(plan: Plan, target: Target, emit: KernelEmitter = emit_kernel) -> Program:
    """The plan as one module."""
    functions = Functions(target, emit)
    writer = _EntryWriter(plan, functions)
    entry = writer.entry_text()
    parameters = "ptr, ptr, i64, i64, ptr"
    declared = [f"declare void @{symbol}({parameters})" for symbol in functions.apart]
    apart = set(functions.apart.values())
    own = [text for text in functions.texts if text not in apart]
    return Program(
        module_text([*own, *declared, entry_code.DECLARATIONS, *writer.helpers(), entry]),
        {symbol: module_text([text]) for symbol, text in functions.apart.items()},
        tuple(functions.blas),
        writer.long,
        writer.splits,
        tuple(writer.host_calls),
        tuple(functions.names),
        tuple(writer.loops),
    )


@final
class _EntryWriter:
    """Writes the entry: `prologue` runs once, `lines` are the steps."""

    def __init__(self, plan: Plan, functions: Functions) -> None:
        self.plan = plan
        self.functions = functions
        self.prologue: list[str] = []
        self.lines: list[str] = []
        self.globals: dict[tuple[int, ...], str] = {}
        self.block = "%entry"
        self.counters: dict[Counter, str] = {}
        self.bases: dict[int, str] = {}
        self.count = 0
        self.shared_slots = 0  # the longest list of addresses of a step outside loops
        self.host_calls: list[HostCall] = []
        self.loops: list[For | While] = []  # those that are in no other
        self.unpolled = 0  # work of the steps written in this block since the last look at the clock
        self.splits = False
        self.long = block_work(plan.steps) >= LONG_WORK or any(map(_may_be_long, all_steps(plan.steps)))

    def entry_text(self) -> str:
        steps = self.plan.steps
        parts = [steps[at : at + PART] for at in range(0, len(steps), PART)] if len(steps) > PART else []
        texts = [self._part_text(number, part) for number, part in enumerate(parts)]
        frame = "%frame" if self.long else "null"
        for number in range(len(parts)):
            arguments = f"ptr %addresses, ptr %workspace, ptr %context, ptr {frame}"
            self.leave_if_not_zero(self.value("status", f"call i32 @{ENTRY}.{number}({arguments})"))
        if not parts:
            self.steps(steps)
        head = f"define i32 @{ENTRY}(ptr %addresses, ptr %workspace, ptr %context) nounwind {{"
        entry = self._function_text(
            head, entry_code.RELEASE if self.long else (), entry_code.REACQUIRE if self.long else ()
        )
        tables = [
            f"@{name} = private constant [{len(sizes)} x i64] [{', '.join(f'i64 {size}' for size in sizes)}]"
            for sizes, name in self.globals.items()
        ]
        return "\n".join([*tables, *texts, entry])

    def _part_text(self, number: int, steps: tuple[Step, ...]) -> str:
        """A function of its own for some of the steps: LLVM takes more than proportionally long for a long one."""
        self.steps(steps)
        parameters = "ptr %addresses, ptr %workspace, ptr %context, ptr %frame"
        text = self._function_text(f"define private i32 @{ENTRY}.{number}({parameters}) nounwind {{")
        self.prologue, self.lines, self.bases, self.shared_slots, self.block = [], [], {}, 0, "%entry"
        return text

    def helpers(self) -> list[str]:
        """The functions that the entry calls besides kernels, where it does."""
        host = [hostcall_code.host_call_text(self.long)] if self.host_calls else []
        return [*host, entry_code.PIECES] if self.long else host

    def _function_text(self, head: str, before: tuple[str, ...] = (), after: tuple[str, ...] = ()) -> str:
        """What has been written, as a function that returns the status."""
        opening = ["entry:", "  %status = alloca i32", "  store i32 0, ptr %status"]
        result = "%left" if after else "%result"
        if self.shared_slots:
            opening.append(f"  %slots = alloca [{self.shared_slots} x ptr]")
        closing = ["  br label %leave", "leave:", "  %result = load i32, ptr %status"]
        closing += [*after, f"  ret i32 {result}", "}"]
        return "\n".join([head, *opening, *before, *self.prologue, *self.lines, *closing, ""])

    # small pieces

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"%{prefix}.{self.count}"

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def value(self, prefix: str, instruction: str) -> str:
        name = self.name(prefix)
        self.line(f"{name} = {instruction}")
        return name

    def label(self, name: str) -> None:
        """Begin the block `name`."""
        self.lines.append(f"{name[1:]}:")
        self.block = name

    def branch_if(self, condition: str, then: str, otherwise: str) -> None:
        self.line(f"br i1 {condition}, label {then}, label {otherwise}")

    def leave_if_not_zero(self, status: str) -> None:
        """End the program if the i32 `status` is not 0."""
        go_on, stop = self.name("go.on"), self.name("stop")
        self.branch_if(self.value("bad", f"icmp ne i32 {status}, 0"), stop, go_on)
        self.label(stop)
        self.line("store i32 1, ptr %status")
        self.line("br label %leave")
        self.label(go_on)

    # addresses

    def base(self, number: int) -> str:
        """The address of a storage, found once at the start."""
        if number not in self.bases:
            storage = self.plan.storages[number]
            name = f"%base.{number}"
            position = storage.position
            if storage.kind == "temporary":
                address = f"getelementptr i8, ptr %workspace, i64 {position}"
                self.prologue.append(f"  {name} = {address}")
            else:
                table = "%context" if storage.kind == "constant" else "%addresses"
                if storage.kind == "constant":
                    position += 1
                elif storage.kind == "result":
                    position += self.plan.count("argument")
                self.prologue += [
                    f"  {name}.at = getelementptr i64, ptr {table}, i64 {position}",
                    f"  {name} = load ptr, ptr {name}.at",
                ]
            self.bases[number] = name
        return self.bases[number]

    def address(self, reference: Reference) -> str:
        address = self.base(reference.storage)
        if reference.offset:
            address = self.value("at", f"getelementptr i8, ptr {address}, i64 {reference.offset}")
        for stride in reference.strides:
            index = self.index(stride)
            offset = self.value("offset", f"mul i64 {index}, {stride.nbytes}")
            address = self.value("at", f"getelementptr i8, ptr {address}, i64 {offset}")
        return address

    def index(self, stride: Stride) -> str:
        counter = self.counters[stride.counter]
        if stride.modulo:
            shifted = self.value("phase", f"add i64 {counter}, {stride.phase}")
            return self.value("turn", f"urem i64 {shifted}, {stride.modulo}")
        if stride.reverse_from is not None:
            return self.value("reversed", f"sub i64 {stride.reverse_from}, {counter}")
        return counter

    def slots(self, references: list[Reference]) -> str:
        """An array of these addresses. Inside loops each step has its own, where the addresses
        that do not move are written once."""
        inside = bool(self.counters)
        if inside:
            array = self.name("slots")
            self.prologue.append(f"  {array} = alloca [{max(1, len(references))} x ptr]")
        else:
            array = "%slots"
            self.shared_slots = max(self.shared_slots, len(references), 1)
        for position, reference in enumerate(references):
            moving = bool(reference.strides) or not inside
            lines, self.lines = self.lines, (self.lines if moving else self.prologue)
            address = self.address(reference)
            at = self.value("slot", f"getelementptr ptr, ptr {array}, i64 {position}")
            self.line(f"store ptr {address}, ptr {at}")
            self.lines = lines
        return array

    def sizes(self, sizes: tuple[int, ...]) -> str:
        if not sizes:
            return "null"
        return "@" + self.globals.setdefault(sizes, f"sizes.{len(self.globals)}")

    # steps

    def steps(self, steps: tuple[Step, ...]) -> None:
        before, self.unpolled = self.unpolled, 0
        for step in steps:
            self.step(step)
            if not self.has_polled(step):
                self.unpolled += step_work(step)
            if self.unpolled >= UNPOLLED_WORK:
                self.spend(self.unpolled)
                self.unpolled = 0
        self.unpolled = before

    def step(self, step: Step) -> None:
        match step:
            case KernelCall():
                self.kernel_call(step)
            case MatrixProduct():
                self.matrix_product(step)
            case LibraryCall():
                self.library_call(step)
            case HostCall():
                self.host_call(step)
            case Copy():
                self.copy(step)
            case Fill():
                self.fill(step)
            case For():
                self.for_loop(step)
            case While():
                self.while_loop(step)
            case Branch():
                self.branch(step)

    def copy(self, step: Copy) -> None:
        if not step.nbytes or self.in_place(step):
            return
        to, source = self.address(step.destination), self.address(step.source)
        if self.may_be_taken_over(step):
            copy, done = self.name("copy"), self.name("copied")
            self.branch_if(self.value("there", f"icmp eq ptr {to}, {source}"), done, copy)
            self.label(copy)
            self.copy_bytes(to, source, step)
            self.line(f"br label {done}")
            self.label(done)
        else:
            self.copy_bytes(to, source, step)

    def in_place(self, step: Copy) -> bool:
        """Whether the copy goes where the original lies."""
        to, source = step.destination, step.source
        storages = self.plan.storages[to.storage], self.plan.storages[source.storage]
        offsets = {s.position + r.offset for s, r in zip(storages, (to, source), strict=True)}
        return {s.kind for s in storages} == {"temporary"} and len(offsets) == 1 and to.strides == source.strides

    def may_be_taken_over(self, step: Copy) -> bool:
        """Whether the copy may go where the original lies, if that is donated."""
        result, argument = self.plan.storages[step.destination.storage], self.plan.storages[step.source.storage]
        kinds = result.kind, argument.kind
        return kinds == ("result", "argument") and (result.position, argument.position) in self.plan.takeovers

    def copy_bytes(self, to: str, source: str, step: Copy) -> None:
        if step.nbytes > entry_code.PIECE and self.long:
            call = f"call i32 @copy_in_pieces(ptr {to}, ptr {source}, i64 {step.nbytes}, ptr %frame)"
            self.leave_if_not_zero(self.value("status", call))
        else:
            self.line(f"call void @llvm.memmove.p0.p0.i64(ptr {to}, ptr {source}, i64 {step.nbytes}, i1 false)")

    def fill(self, step: Fill) -> None:
        if not step.nbytes:
            return
        to = self.address(step.destination)
        if step.nbytes > entry_code.PIECE and self.long:
            call = f"call i32 @fill_in_pieces(ptr {to}, i8 {step.byte}, i64 {step.nbytes}, ptr %frame)"
            self.leave_if_not_zero(self.value("status", call))
        else:
            self.line(f"call void @llvm.memset.p0.i64(ptr {to}, i8 {step.byte}, i64 {step.nbytes}, i1 false)")

    def kernel_call(self, step: KernelCall) -> None:
        if not step.extent:
            return
        symbol = self.functions.kernel(step.kernel)
        buffers, sizes = self.slots(list(step.buffers)), self.sizes(step.sizes)
        chunk = chunk_of(step)
        self.task(symbol, buffers, sizes, step.extent, chunk, step.work)

    def matrix_product(self, step: MatrixProduct) -> None:
        tiles = products.tiling(step.m, step.n, step.k)
        extent = step.batch * tiles.count
        if not extent or not step.m or not step.n:
            return
        symbol = self.functions.product(step)
        operands = (step.left, step.right, step.out)
        buffers = self.slots([operand.reference for operand in operands])
        chunk = products.chunk_of(step, tiles)
        self.task(symbol, buffers, "null", extent, chunk, step_work(step))

    def library_call(self, step: LibraryCall) -> None:
        if step.batch:
            symbol, buffers = self.functions.library_call(step), self.slots(list(step.buffers))
            chunk = max(1, products.CHUNK_FLOPS // max(step.work, 1))
            self.task(symbol, buffers, "null", step.batch, chunk, step_work(step))

    def task(self, symbol: str, buffers: str, sizes: str, extent: int, chunk: int, work: int) -> None:
        """Run a task here, or in chunks over the pool."""
        chunks = -(-extent // chunk)
        if chunks == 1 or not self.long:
            frame = "%frame" if self.long else "null"
            self.line(f"call void @{symbol}(ptr {buffers}, ptr {sizes}, i64 0, i64 {extent}, ptr {frame})")
            if symbol in self.functions.polling:
                status = self.value("polled", f"load i64, ptr {self.field(watch_code.FRAME_STATUS)}")
                self.leave_if_not_zero(self.value("status", f"trunc i64 {status} to i32"))
            return
        self.splits = True
        status = self.value(
            "status",
            f"call i32 @jl_pool_run(ptr @{symbol}, ptr {buffers}, ptr {sizes}, i64 {extent}, "
            f"i64 {chunk}, i64 {chunks}, ptr %frame, i64 {work // chunks})",
        )
        self.leave_if_not_zero(status)

    def host_call(self, step: HostCall) -> None:
        addresses = self.slots([o.reference for o in (*step.inputs, *step.outputs)])
        program = self.value("program", "load ptr, ptr %context")
        frame = "%frame" if self.long else "null"
        arguments = f"ptr {program}, i64 {len(self.host_calls)}, ptr {addresses}, ptr {frame}"
        status = self.value("status", f"call i32 @call_host({arguments})")
        self.host_calls.append(step)
        self.leave_if_not_zero(status)

    def for_loop(self, step: For) -> None:
        if not step.trips:
            return
        head, exit_label = self.name("for"), self.name("end")
        index, following = self.name("i"), self.name("i.next")
        before = self.block
        self.line(f"br label {head}")
        self.label(head)
        at = len(self.lines)  # the phi is written when the block that jumps back is known
        self.tell_progress(step, index)
        self.counters[step.counter] = index
        self.steps(step.body)
        del self.counters[step.counter]
        if self.has_polled(step):
            self.spend(block_work(step.body))
        self.line(f"{following} = add i64 {index}, 1")
        more = self.value("more", f"icmp ult i64 {following}, {step.trips}")
        self.lines.insert(at, f"  {index} = phi i64 [ 0, {before} ], [ {following}, {self.block} ]")
        self.branch_if(more, head, exit_label)
        self.label(exit_label)
        self.end_progress()

    def while_loop(self, step: While) -> None:
        head, body, exit_label = self.name("while"), self.name("do"), self.name("end")
        index, following = self.name("i"), self.name("i.next")
        before = self.block
        self.line(f"br label {head}")
        self.label(head)
        at = len(self.lines)
        self.tell_progress(step, index)
        self.counters[step.counter] = index
        self.steps(step.condition)
        predicate = self.value("predicate", f"load i8, ptr {self.address(step.predicate)}")
        self.branch_if(self.value("go", f"icmp ne i8 {predicate}, 0"), body, exit_label)
        self.label(body)
        self.steps(step.body)
        del self.counters[step.counter]
        self.spend(block_work(step.condition + step.body))
        self.line(f"{following} = add i64 {index}, 1")
        self.lines.insert(at, f"  {index} = phi i64 [ 0, {before} ], [ {following}, {self.block} ]")
        self.line(f"br label {head}")
        self.label(exit_label)
        self.end_progress()

    def branch(self, step: Branch) -> None:
        index = self.value("index", f"load i32, ptr {self.address(step.index)}")
        low = self.value("low", f"call i32 @llvm.smax.i32(i32 {index}, i32 0)")
        top = len(step.branches) - 1
        clamped = self.value("chosen", f"call i32 @llvm.smin.i32(i32 {low}, i32 {top})")
        labels = [self.name("case") for _ in step.branches]
        end = self.name("end")
        cases = " ".join(f"i32 {n}, label {label}" for n, label in enumerate(labels[1:], 1))
        self.line(f"switch i32 {clamped}, label {labels[0]} [ {cases} ]")
        for label, steps in zip(labels, step.branches, strict=True):
            self.label(label)
            self.steps(steps)
            self.line(f"br label {end}")
        self.label(end)

    # looking at the clock

    def has_polled(self, step: Step) -> bool:
        """Whether the step itself has spent what it works."""
        return isinstance(step, While) or (isinstance(step, For) and step_work(step) >= UNPOLLED_WORK)

    def tell_progress(self, step: For | While, index: str) -> None:
        """In the head of an outermost loop: the frame says which it is and how far it is."""
        if self.long and not self.counters:
            self.line(f"store i64 {len(self.loops)}, ptr {self.field(watch_code.FRAME_LOOP)}")
            self.line(f"store i64 {index}, ptr {self.field(watch_code.FRAME_DONE)}")
            self.loops.append(step)

    def end_progress(self) -> None:
        if self.long and not self.counters:
            self.line(f"store i64 -1, ptr {self.field(watch_code.FRAME_LOOP)}")

    def field(self, word: int) -> str:
        """The address of a word of the frame."""
        return self.value("field", f"getelementptr i64, ptr %frame, i64 {word}")

    def spend(self, work: int) -> None:
        """Take `work` from the budget; when it is used up, look at the clock (`jl_poll`)."""
        if not self.long:
            return
        budget = self.value("budget", "load i64, ptr %frame")
        rest = self.value("rest", f"sub i64 {budget}, {work}")
        self.line(f"store i64 {rest}, ptr %frame")
        poll, go_on = self.name("poll"), self.name("go.on")
        self.branch_if(self.value("out", f"icmp slt i64 {rest}, 0"), poll, go_on)
        self.label(poll)
        self.leave_if_not_zero(self.value("status", "call i32 @jl_poll(ptr %frame)"))
        self.line(f"br label {go_on}")
        self.label(go_on)


def _may_be_long(step: Step) -> bool:
    """Whether a step may take long whatever its estimated work."""
    match step:
        case While():
            return True
        case KernelCall():
            return chunk_of(step) < step.extent or polls(step.kernel)
        case _:
            return False
