"""The native code that gives out blocks of memory and takes them back: LLVM IR text.

A block is owned by a capsule, an object whose destructor is native code: no bytecode runs between the moment when
memory leaves its free list and that when the capsule owns it, nor when a capsule dies. So a signal handler, which
Python runs between bytecodes, never finds memory that nobody owns, and an exception that it raises is never lost
in a destructor. All of it runs with the interpreter lock held.

    object jl_memory_take(class)   (address, capsule), or MemoryError
    i64    jl_memory_trim(class)   gives what is free back to the system (of small classes whole slabs); its bytes

The free blocks of a class are a list linked through their first words. The first block of a slab is its header.
"""

from __future__ import annotations

from jaxlite.core.device import ALIGNMENT

EXPORTS = ("jl_memory", "jl_memory_take", "jl_memory_trim")
PYTHON_SYMBOLS = (
    "PyCapsule_GetContext",
    "PyCapsule_GetPointer",
    "PyCapsule_New",
    "PyCapsule_SetContext",
    "PyErr_NoMemory",
    "Py_BuildValue",
)
SYSTEM_SYMBOLS = ("aligned_alloc", "free")

SLAB = 1 << 16  # bytes carved at once for a small class, at a multiple of as many

# The memory of the module, bytes: what is free, how much may be beyond quotas, then the classes.
WARM_BYTES, WARM_LIMIT, CLASSES = 0, 8, 64
CLASS_BYTES, MAX_CLASSES = 64, 512
# Words of a class: its free blocks, bytes of a block, the number of free ones, how many it may keep whatever the others
# keep, whether it is carved from slabs, the number of blocks that are owned.
HEAD, NBYTES, COUNT, QUOTA, CARVED, OWNED = range(6)
# Words of a slab's header: its free blocks, and how many of them `jl_memory_trim` has taken from the list.
SLAB_FREE, SLAB_UNLINKED = range(2)


def _class_words() -> str:
    """Instructions that compute the addresses of a class's words."""
    return "\n".join(f"  %class.{n} = getelementptr i64, ptr %class, i64 {n}" for n in range(6))


def _add(name: str, pointer: str, amount: str) -> str:
    return f"""
  %{name} = load i64, ptr {pointer}
  %{name}.now = add i64 %{name}, {amount}
  store i64 %{name}.now, ptr {pointer}
"""


def memory_text() -> str:
    """The module."""
    return "\n".join((_HEAD, _LISTS, _GROW, _TAKE, _GIVE, _TRIM))


_HEAD = f"""
@jl_memory = global [{CLASSES + CLASS_BYTES * MAX_CLASSES} x i8] zeroinitializer, align 64
@pair = private constant [3 x i8] c"KN\\00"
declare ptr @PyCapsule_New(ptr, ptr, ptr)
declare ptr @PyCapsule_GetPointer(ptr, ptr)
declare ptr @PyCapsule_GetContext(ptr)
declare i32 @PyCapsule_SetContext(ptr, ptr)
declare ptr @PyErr_NoMemory()
declare ptr @Py_BuildValue(ptr, ...)
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare ptr @llvm.ptrmask.p0.i64(ptr, i64)
"""

# Put a block on its class's list, and take one from it; `note` keeps the numbers.
_LISTS = f"""
define internal void @note(ptr %class, ptr %block, i64 %more) {{
{_class_words()}
  %nbytes = load i64, ptr %class.{NBYTES}
  %bytes = mul i64 %nbytes, %more
{_add("count", f"%class.{COUNT}", "%more")}
{_add("warm", "@jl_memory", "%bytes")}
  %carved = load i64, ptr %class.{CARVED}
  %apart = icmp eq i64 %carved, 0
  br i1 %apart, label %done, label %slab
slab:
  %header = call ptr @llvm.ptrmask.p0.i64(ptr %block, i64 {-SLAB})
{_add("free", "%header", "%more")}
  ret void
done:
  ret void
}}

define internal void @push(ptr %class, ptr %block) {{
  %head = load ptr, ptr %class
  store ptr %head, ptr %block
  store ptr %block, ptr %class
  call void @note(ptr %class, ptr %block, i64 1)
  ret void
}}

define internal ptr @pop(ptr %class) {{
  %block = load ptr, ptr %class
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %some
some:
  %next = load ptr, ptr %block
  store ptr %next, ptr %class
  call void @note(ptr %class, ptr %block, i64 -1)
  ret ptr %block
done:
  ret ptr null
}}
"""

# New memory: a block, or a slab whose blocks become free.
_GROW = f"""
define internal ptr @grow(ptr %class) {{
entry:
{_class_words()}
  %nbytes = load i64, ptr %class.{NBYTES}
  %carved = load i64, ptr %class.{CARVED}
  %apart = icmp eq i64 %carved, 0
  br i1 %apart, label %block, label %slab
block:
  %new = call ptr @aligned_alloc(i64 {ALIGNMENT}, i64 %nbytes)
  ret ptr %new
slab:
  %header = call ptr @aligned_alloc(i64 {SLAB}, i64 {SLAB})
  %none = icmp eq ptr %header, null
  br i1 %none, label %refused, label %carve
carve:
  call void @llvm.memset.p0.i64(ptr %header, i8 0, i64 {ALIGNMENT}, i1 false)
  br label %next
next:
  %at = phi i64 [ %nbytes, %carve ], [ %following, %next ]
  %part = getelementptr i8, ptr %header, i64 %at
  call void @push(ptr %class, ptr %part)
  %following = add i64 %at, %nbytes
  %more = icmp ult i64 %following, {SLAB}
  br i1 %more, label %next, label %done
done:
  %first = call ptr @pop(ptr %class)
  ret ptr %first
refused:
  ret ptr null
}}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""

_TAKE = f"""
define ptr @jl_memory_take(ptr %class) {{
entry:
{_class_words()}
  %warm = call ptr @pop(ptr %class)
  %cold = icmp eq ptr %warm, null
  br i1 %cold, label %grow, label %own
grow:
  %new = call ptr @grow(ptr %class)
  %none = icmp eq ptr %new, null
  br i1 %none, label %refused, label %own
own:
  %block = phi ptr [ %warm, %entry ], [ %new, %grow ]
  %capsule = call ptr @PyCapsule_New(ptr %block, ptr null, ptr @give)
  %failed = icmp eq ptr %capsule, null
  br i1 %failed, label %back, label %owned
owned:
{_add("owners", f"%class.{OWNED}", "1")}
  call i32 @PyCapsule_SetContext(ptr %capsule, ptr %class)
  %result = call ptr (ptr, ...) @Py_BuildValue(ptr @pair, ptr %block, ptr %capsule)
  ret ptr %result
back:
  call void @push(ptr %class, ptr %block)
  ret ptr null
refused:
  %error = call ptr @PyErr_NoMemory()
  ret ptr null
}}
"""

# A capsule dies: its block is kept, or freed if enough is kept. Slabs in use hold small blocks that are too many: the
# quota then grows, so that not every block looks for slabs to return.
_GIVE = f"""
define internal void @give(ptr %capsule) {{
  %block = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr null)
  %class = call ptr @PyCapsule_GetContext(ptr %capsule)
{_class_words()}
{_add("owners", f"%class.{OWNED}", "-1")}
  %count = load i64, ptr %class.{COUNT}
  %quota = load i64, ptr %class.{QUOTA}
  %within = icmp ult i64 %count, %quota
  br i1 %within, label %keep, label %many
keep:
  call void @push(ptr %class, ptr %block)
  ret void
many:
  %carved = load i64, ptr %class.{CARVED}
  %apart = icmp eq i64 %carved, 0
  br i1 %apart, label %large, label %small
small:
  call void @push(ptr %class, ptr %block)
  %returned = call i64 @jl_memory_trim(ptr %class)
  %rest = load i64, ptr %class.{COUNT}
  %twice = mul i64 %rest, 2
  %quota.now = call i64 @llvm.umax.i64(i64 %quota, i64 %twice)
  store i64 %quota.now, ptr %class.{QUOTA}
  ret void
large:
  %nbytes = load i64, ptr %class.{NBYTES}
  %warm = load i64, ptr @jl_memory
  %limit = load i64, ptr getelementptr (i8, ptr @jl_memory, i64 {WARM_LIMIT})
  %sum = add i64 %warm, %nbytes
  %enough = icmp ugt i64 %sum, %limit
  br i1 %enough, label %return, label %keep
return:
  call void @free(ptr %block)
  ret void
}}
declare i64 @llvm.umax.i64(i64, i64)
"""

_TRIM = f"""
define i64 @jl_memory_trim(ptr %class) {{
entry:
{_class_words()}
  %nbytes = load i64, ptr %class.{NBYTES}
  %carved = load i64, ptr %class.{CARVED}
  %apart = icmp eq i64 %carved, 0
  br i1 %apart, label %blocks, label %slabs
blocks:
  %returned = phi i64 [ 0, %entry ], [ %more, %block ]
  %free = call ptr @pop(ptr %class)
  %none = icmp eq ptr %free, null
  br i1 %none, label %done, label %block
block:
  call void @free(ptr %free)
  %more = add i64 %returned, %nbytes
  br label %blocks
done:
  ret i64 %returned
slabs:
  %all = udiv i64 {SLAB}, %nbytes
  %capacity = sub i64 %all, 1
  br label %look
look:
  %link = phi ptr [ %class, %slabs ], [ %part, %pass ], [ %link, %took ]
  %sum = phi i64 [ 0, %slabs ], [ %sum, %pass ], [ %sum.now, %took ]
  %part = load ptr, ptr %link
  %end = icmp eq ptr %part, null
  br i1 %end, label %over, label %part.there
part.there:
  %header = call ptr @llvm.ptrmask.p0.i64(ptr %part, i64 {-SLAB})
  %slab.free = load i64, ptr %header
  %unused = icmp eq i64 %slab.free, %capacity
  br i1 %unused, label %unlink, label %pass
pass:
  br label %look
unlink:
  %after = load ptr, ptr %part
  store ptr %after, ptr %link
{_add("count", f"%class.{COUNT}", "-1")}
  %less = sub i64 0, %nbytes
{_add("warm", "@jl_memory", "%less")}
  %header.unlinked = getelementptr i64, ptr %header, i64 {SLAB_UNLINKED}
{_add("unlinked", "%header.unlinked", "1")}
  %last = icmp eq i64 %unlinked.now, %capacity
  br i1 %last, label %return, label %took
return:
  call void @free(ptr %header)
  br label %took
took:
  %gone = select i1 %last, i64 {SLAB}, i64 0
  %sum.now = add i64 %sum, %gone
  br label %look
over:
  ret i64 %sum
}}
"""
