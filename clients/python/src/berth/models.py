# Generated from api/openapi.yaml by clients/python/generate.py. DO NOT EDIT.
"""What the API answers, one class for each schema of its description.

A field that the server left out is None. What a newer server adds is kept, too.
"""

from __future__ import annotations

from typing import Any, Literal, Optional, Union

from berth._model import Model
from pydantic import AwareDatetime, Field, RootModel


class ProblemItem(Model):
    code: str
    pointer: str
    """
    JSON pointer (RFC 6901) into the document, or the name of a request parameter
    """
    detail: str


class ExportFormat(RootModel[Union[Literal['csv', 'jsonl', 'parquet'], str]]):
    root: Union[Literal['csv', 'jsonl', 'parquet'], str]


class ExportTable(RootModel[Union[Literal['trials', 'metrics'], str]]):
    root: Union[Literal['trials', 'metrics'], str]


class ETA(Model):
    """
    How long the sweep still takes if it goes on as now; a target or a limit of failed trials may end it sooner. Trials that have not begun / trials that run (or max_parallel, where that is less) = waves. min_seconds is waves times the smaller of lower quartile and mean of how long the newest 200 trials took that ended, without waits between attempts; max_seconds is waves, rounded up, and one for those that run, times the larger of upper quartile and mean, and at least as long as the oldest attempt has run. Both keep to what limits.max_duration leaves; pauses do not count for it, so max_seconds holds all of it. Only in GET /sweeps/{id}, of a running sweep; absent while fewer than 3 trials ended, none runs, or it is not known how many there will be
    """

    min_seconds: float
    max_seconds: float
    why: str
    """
    The figures that it comes from, in plain words
    """


class Objective(Model):
    metric: str
    goal: Union[Literal['maximize', 'minimize'], str]
    target: Optional[float] = None
    further: Optional[list[Objective]] = None
    """
    The other objectives, in the order of the sweep file
    """


class Constraint(Model):
    """
    A bound on a result
    """

    metric: str
    max: Optional[float] = None
    min: Optional[float] = None


class Best(Model):
    """
    The best trial so far
    """

    trial: int
    """
    Its number
    """
    value: float


class Counts(Model):
    """
    Trials by state
    """

    total: int
    """
    Created so far
    """
    planned: int
    """
    At the end, when it is known; else 0
    """
    waiting: int
    """
    Pending, probing or waiting
    """
    running: int
    succeeded: int
    failed: int
    infeasible: int
    """
    Need more memory than they can get
    """
    canceled: int
    pruned: int
    """
    Stopped early
    """
    oom_retries: int
    """
    Attempts that ran out of memory and were followed by another
    """


class SweepPatch(Model):
    max_parallel: Optional[int] = None
    """
    0 = as many as fit; of a sweep that goes on
    """
    note: Optional[str] = None
    """
    Of people; words that begin with # are its tags
    """
    note_was: Optional[str] = None
    """
    The note that this one takes the place of; another one there is a conflict
    """


class TrialPatch(Model):
    note: str
    """
    Of people; words that begin with # are its tags
    """
    note_was: Optional[str] = None
    """
    The note that this one takes the place of; another one there is a conflict
    """


class SweepCopy(Model):
    name: Optional[str] = None
    """
    Of the new sweep; default: the old one's
    """


class Validation(Model):
    valid: bool
    problems: list[ProblemItem]
    warnings: list[ProblemItem]
    spec: Optional[dict[str, Any]] = None


class PreviewStage(Model):
    name: str
    runs: int
    """
    How often it runs for the enumerated trials, if no output is there
    """
    known: int
    """
    Of these, runs whose output is there
    """
    duration_seconds: Optional[float] = None
    """
    Of one run, measured; absent = not known
    """


class PreviewShape(Model):
    key: str
    values: dict[str, Any]
    trials: int
    """
    Among the enumerated ones
    """
    cached: bool
    """
    It was measured before
    """
    memory_bytes: int
    """
    What each trial would reserve
    """
    cpu_milli: int
    device_class: Optional[str] = None
    """
    What these figures are for; of several classes that the trial can use, the first
    """
    device_bytes: Optional[int] = None
    """
    Of the GPU's memory; absent = it runs without one
    """
    exclusive_device: Optional[bool] = None
    """
    It would have the GPU for itself
    """
    memory_peak_bytes: Optional[int] = None
    """
    Measured
    """
    device_peak_bytes: Optional[int] = None
    """
    The same of the GPU
    """
    spill_bytes: Optional[int] = None
    """
    Of memory_bytes, for what no GPU can hold: it would run in unified memory (gpu_memory_spill); absent = it would not
    """
    sized_by: Union[Literal['spec', 'measured', 'predicted', 'unmeasured'], str]
    """
    Where memory_bytes comes from
    """
    duration_seconds: Optional[float] = None
    """
    Of one attempt, measured; of several classes, where it takes longest
    """


class PreviewDevice(Model):
    """
    How full a GPU gets, as its host; absent figures are 0
    """

    id: str
    model: str
    simulated: Optional[bool] = None
    """
    No real GPU (--fake-gpus)
    """
    problem: Optional[str] = None
    """
    Why it takes no trials, in plain words; absent = it takes them
    """
    memory_bytes: int
    """
    In all
    """
    memory_headroom_bytes: Optional[int] = None
    """
    Kept free on purpose
    """
    memory_used_by_others_bytes: Optional[int] = None
    """
    Used by programs outside Berth now; absent = nothing, or not known
    """
    memory_reserved_bytes: Optional[int] = None
    """
    Reservations of the running attempts, and of the sweep's trials beside them
    """
    memory_sweep_bytes: Optional[int] = None
    """
    Of memory_reserved_bytes, the sweep's
    """


class PreviewDuration(Model):
    """
    Wall-clock time; absent when no shape was timed, none can run, or it is not known how many trials there will be
    """

    min_seconds: float
    max_seconds: float


class Rung(Model):
    """
    A step at which early stopping judged a trial
    """

    rung: int
    """
    From 0
    """
    step: int
    """
    Of the report that was judged
    """
    value: Optional[float] = None
    """
    Of the objective; absent = NaN or infinite
    """
    stop: bool
    """
    The trial was stopped there
    """
    why: str
    """
    In numbers
    """
    at: AwareDatetime


class Origin(Model):
    """
    Where the values of a trial come from
    """

    by: str
    """
    The algorithm, or enqueue; sobol before an algorithm learns, and where it finds nothing new
    """
    ended: Optional[int] = None
    """
    Trials from whose ends an algorithm that learns chose
    """
    prior: Optional[int] = None
    """
    Trials of earlier sweeps from which it learned
    """
    open: Optional[int] = None
    """
    Trials without a result at that time
    """


class Rejection(Model):
    """
    Why a trial does not go to one host
    """

    host_id: Optional[str] = None
    host_name: Optional[str] = None
    device_id: Optional[str] = None
    dimension: Union[Literal['state', 'memory', 'free_memory', 'disk', 'cpu', 'attempts', 'device', 'device_memory', 'contexts', 'device_activity', 'exclusive', 'dataset', 'secret', 'stage', 'sweep', 'trial'], str]
    """
    What there is not enough of
    """
    needed: int
    """
    Bytes, thousandths of a core, or a count
    """
    free: int
    never: Optional[bool] = None
    """
    It would not fit even when the candidate is empty
    """
    reason: str
    """
    In plain words
    """


class Demand(Model):
    """
    The reservation
    """

    memory_bytes: int
    cpu_milli: int
    """
    Thousandths of a core
    """
    device_bytes: Optional[int] = None
    """
    Memory of the GPU
    """
    contexts: Optional[int] = None
    """
    Processes on the GPU
    """
    exclusive: Optional[bool] = None
    """
    Alone on its host
    """
    exclusive_device: Optional[bool] = None
    """
    Alone on its GPU
    """
    spill_bytes: Optional[int] = None
    """
    Of memory_bytes, for what its GPU cannot hold: it runs in unified memory; absent = it does not
    """


class DevicePhases(Model):
    """
    Most that a Keras program held of its GPU's memory in each phase; a phase that is absent was not seen
    """

    start_bytes: Optional[int] = None
    """
    Before its first fit
    """
    training_bytes: Optional[int] = None
    validation_bytes: Optional[int] = None


class DeviceActivity(Model):
    """
    How busy an attempt keeps its GPU, in the mean; thousandths. Of an attempt: while it holds memory there. Of a footprint: over the whole run. All 0 = not measured
    """

    sm_milli: int
    """
    Of the time, an SM had work; averaged over the SMs. Far less than nvidia-smi's utilisation
    """
    dram_milli: int
    """
    Of the bandwidth of the GPU's memory
    """
    tensor_milli: int
    """
    Of the time, a tensor core was in use
    """


class ReportStage(Model):
    """
    What the succeeded trials had of a stage
    """

    name: str
    trials: int
    """
    That read its outputs
    """
    runs: int
    """
    Of this sweep; earlier sweeps made the other outputs
    """
    seconds: float
    """
    That these runs took
    """
    seconds_alone: float
    """
    That it would have taken, if each trial ran the stage itself
    """


class InsightImportance(Model):
    parameter: str
    importance: Optional[float] = None
    """
    How far its values in the best trials differ from its values in all, as a share of all differences, 0 to 1. Absent = too few trials have the parameter, fewer than 20
    """
    trials: int
    """
    With the parameter and a value
    """


class InsightSample(Model):
    """
    What the importance is of
    """

    trials: int
    """
    That succeeded with a value
    """
    top_share: float
    """
    The best part of these, which is compared with all
    """
    problem: Optional[str] = None
    """
    Why no parameter has an importance, such as too few trials; absent = some has, or too few trials have each
    """


class InsightBest(Model):
    trial: int
    value: float
    at: AwareDatetime
    """
    Its end
    """


class InsightFront(Model):
    trial: int
    results: dict[str, float]


class InsightRung(Model):
    rung: int
    """
    From 0
    """
    step: int
    """
    The lowest at which a trial was judged there
    """
    last_step: int
    """
    The highest; a job may skip steps
    """
    trials: int
    """
    That came there
    """
    stopped: int
    """
    Of them
    """
    best: Optional[float] = None
    """
    Absent = none was finite
    """
    cut: Optional[float] = None
    """
    The best value of a trial that was stopped there
    """


class InsightOrigin(Model):
    by: str
    """
    Who chose the values: the algorithm, or enqueue
    """
    trials: int


class ReportTotals(Model):
    """
    Attempts on GPUs, or on the cores of hosts
    """

    places: int
    trials: int
    attempts: int
    """
    Whose container started
    """
    used_seconds: float
    """
    With at least one attempt of the sweep there, added up over places
    """
    charged_seconds: float
    """
    Of used_seconds. Time that other sweeps used a place, too, counts by the share of the reserved memory, so that all sweeps add up to the time that the place was in use
    """
    attempt_seconds: float
    """
    Of all attempts, one after the other
    """
    alone_seconds: float
    """
    What the attempts would take with a place for each; an upper bound when alone_bounded is not 0
    """
    alone_ran: int
    """
    Attempts that ran alone and count with their time
    """
    alone_by_shape: int
    """
    Attempts that ran beside others and count with the mean time of whole runs of their shape that were alone in this sweep, or their own where that is less
    """
    alone_bounded: int
    """
    Attempts that ran beside others and count with their own time
    """
    alone_needless: int
    """
    Attempts that do not count, as one trial at a time would not need them: short probes, out of memory, trouble with neighbours
    """
    at_once: float
    """
    Attempts of the sweep on a place; the mean over used_seconds
    """
    max_at_once: int
    """
    On one place
    """
    reserved_byte_seconds: float
    """
    Of GPU memory, or of the hosts' memory
    """
    default_byte_seconds: float
    """
    The reservation of TensorFlow's default mode over alone_seconds; 0 for cores
    """
    measured_attempts: int
    """
    Ended attempts whose peak is known: measured throughout, and not out of memory
    """
    peak_bytes: int
    """
    Of measured_attempts, added up
    """
    peak_reserved_bytes: int
    """
    Reservations of measured_attempts, added up
    """
    activity_seconds: float
    """
    Of attempt_seconds, on GPUs with measured activity, while the attempt's part of it is known
    """
    sm_seconds: float
    """
    Of used_seconds, as if all SMs had had work of these attempts and then none: their time, times the part of the SMs that had work
    """
    dram_seconds: float
    """
    The same of the bandwidth of the GPU's memory
    """
    tensor_seconds: float
    """
    The same of the tensor cores
    """
    cpu_seconds: float
    """
    Processor time, as measured
    """
    cpu_reserved_seconds: float
    """
    Cores reserved times the time in which cpu_seconds were measured
    """


class ReportPlace(Model):
    """
    A GPU, or the cores of a host
    """

    host_id: str
    host: str
    device_id: Optional[str] = None
    """
    The GPU; absent = the host's cores
    """
    model: Optional[str] = None
    memory_bytes: int
    """
    Of the GPU, or of the host
    """
    default_bytes: int
    """
    What one TensorFlow process reserves of the GPU in its default mode; 0 for cores
    """
    trials: int
    attempts: int
    used_seconds: float
    charged_seconds: float
    attempt_seconds: float
    at_once: float
    max_at_once: int
    reserved_byte_seconds: float
    busy_share: float
    """
    0 to 1: used_seconds of the time from the sweep's first start to its last end. It says that there was work, not how busy the GPU was with it
    """


class ReportLoss(Model):
    cause: str
    """
    A failure kind, or short_probe: it measured its shape and its result was thrown away
    """
    attempts: int
    repeated: int
    """
    Were followed by another attempt of their trial
    """
    seconds: float


class ReportAttempt(Model):
    id: str
    number: int
    """
    From 1 in its trial
    """
    stage: str
    """
    The stage that it ran; main = the sweep's own command
    """
    purpose: Union[Literal['run', 'probe'], str]
    """
    probe: it measures its shape, too
    """
    failure_kind: Optional[Union[Literal['ok', 'host_oom', 'device_oom', 'device_busy', 'too_big', 'user_error', 'bad_config', 'crashed', 'killed', 'preempted', 'timed_out', 'no_result', 'not_finite', 'no_device', 'image_missing', 'bad_command', 'neighbour_fault', 'infra', 'canceled', 'pruned', 'log_flood', 'disk_quota'], str]] = (
        None
    )
    """
    Absent = it runs
    """
    host: str
    device_id: Optional[str] = None
    """
    The GPU; absent = the host's cores
    """
    default_bytes: int
    """
    What TensorFlow's default mode would have reserved of the GPU; 0 for cores
    """
    reserved_bytes: int
    """
    Of the GPU's memory, or of the host's
    """
    peak_bytes: int
    """
    0 = not measured
    """
    peak_partial: Optional[bool] = None
    """
    The peak is a lower bound: a part of the run was not measured, or it ran out of memory
    """
    slack_percent: Optional[float] = None
    """
    Of the reservation, not used at the peak; absent = the peak is not known; below 0 = it used more
    """
    seconds: float
    """
    0 = its container did not start
    """
    alone: bool
    """
    No other attempt was on its GPU, or its host's cores, during its run
    """


class Metric(Model):
    name: str
    step: int
    value: Optional[float] = None
    status: Union[Literal['finite', 'nan', 'infinity', '-infinity'], str]
    """
    Only a finite one has a value
    """
    final: Optional[bool] = None
    at: AwareDatetime


class MetricList(Model):
    data: list[Metric]


class UsagePoint(Model):
    """
    The maximum in one interval; absent values were not measured in it
    """

    at: AwareDatetime
    """
    When the interval begins
    """
    memory_bytes: int
    """
    In all
    """
    reserved_bytes: int
    """
    What attempts reserved of it
    """
    measured_bytes: Optional[int] = None
    """
    What these attempts held of it, added up; 0 where none was
    """
    used_by_others_bytes: Optional[int] = None
    """
    What programs outside Berth used of it
    """
    sm_activity: Optional[float] = None
    """
    The part of a GPU's SMs that attempts kept busy, 0 to 1
    """
    cores_reserved: Optional[float] = None
    """
    Of a machine, not of a GPU
    """
    attempts: int
    """
    That held a place
    """


class MemoryPoint(Model):
    """
    The maximum in one interval; absent values were not measured in it
    """

    at: AwareDatetime
    """
    When the interval begins
    """
    host_bytes: Optional[int] = None
    """
    Of its host's memory: anonymous, shared and kernel memory, without the page cache
    """
    device_bytes: Optional[int] = None
    """
    Of its GPU's memory
    """
    sm_activity: Optional[float] = None
    """
    The part of its GPU's SMs that it kept busy, 0 to 1
    """


class Curve(Model):
    """
    What one trial reported of the metric
    """

    trial: int
    """
    Its number
    """
    state: Union[Literal['pending', 'probing', 'waiting', 'running', 'succeeded', 'failed', 'infeasible', 'canceled', 'pruned'], str]
    attempt_id: str
    steps: list[int]
    """
    Ascending
    """
    values: list[float]
    """
    One for each step, all finite
    """
    total: int
    """
    Finite points there are; more than steps has = the curve is thinned
    """
    not_finite: int
    """
    Points that are NaN or infinite, which are not in values
    """
    first_not_finite_step: Optional[int] = None
    """
    Absent = all are finite
    """


class File(Model):
    path: str
    """
    Below /trial/out
    """
    bytes: int
    sha256: str
    """
    64 hexadecimal digits
    """
    stored_at: AwareDatetime


class LeftOutFile(Model):
    path: str
    """
    Invalid UTF-8 in it is replaced
    """
    reason: str
    """
    In plain words
    """


class MetricName(Model):
    name: str
    trials: int
    """
    Trials that reported it, of the newest 50
    """
    last_step: int
    """
    The largest of any of them
    """


class FailureReason(Model):
    state: Union[Literal['pending', 'probing', 'waiting', 'running', 'succeeded', 'failed', 'infeasible', 'canceled', 'pruned'], str]
    failure_kind: Union[Literal['ok', 'host_oom', 'device_oom', 'device_busy', 'too_big', 'user_error', 'bad_config', 'crashed', 'killed', 'preempted', 'timed_out', 'no_result', 'not_finite', 'no_device', 'image_missing', 'bad_command', 'neighbour_fault', 'infra', 'canceled', 'pruned', 'log_flood', 'disk_quota'], str]
    """
    How an attempt ended (docs/errors.md)
    """
    message: str
    """
    Of the first of these trials: what happened, and what to do
    """
    trials: int
    """
    How many trials failed so
    """
    first: int
    """
    The lowest number of them
    """


class LogPiece(Model):
    offset: int
    length: int
    """
    In bytes
    """
    stream: Union[Literal['stdout', 'stderr', 'berth'], str]
    """
    berth: what Berth itself says
    """
    at: AwareDatetime
    text: str
    """
    Bytes that are no UTF-8 are replaced
    """


class LogPage(Model):
    data: list[LogPiece]
    next_offset: int
    complete: bool
    """
    The attempt has ended and nothing follows
    """


class Shape(Model):
    """
    What decides memory
    """

    image_digest: str
    command: list[str]
    values: dict[str, Any]
    stage: str
    device_model: Optional[str] = None
    environment: Optional[dict[str, str]] = None
    cpu_milli: int


class AdvicePiece(Model):
    about: str
    """
    Such as preallocation, tensor_cores, input, batch or xla
    """
    evidence: str
    """
    The measurements, in plain words
    """
    do: str
    """
    The step to take
    """


class StageOutput(Model):
    attempt_id: str
    """
    That wrote it
    """
    host_id: str
    host_name: str
    made_at: AwareDatetime
    seconds: float
    """
    That the run took
    """
    files: Optional[int] = None
    """
    Stored files; absent = not known
    """
    bytes: Optional[int] = None
    """
    Of the stored files; absent = not known
    """
    lost: Optional[str] = None
    """
    Why no trial can use it, so that it runs again; absent = trials can
    """


class StageParts(Model):
    earlier: list[str]
    """
    Keys of the earlier stages, in order
    """
    image: str
    """
    Its digest
    """
    command: list[str]
    values: dict[str, Any]
    environment: Optional[dict[str, str]] = None
    workdir: Optional[str] = None
    entrypoint: Optional[bool] = None
    """
    The image's entrypoint stands before the command
    """
    datasets: Optional[list[str]] = None
    """
    NAME@VERSION of each
    """
    secrets: Optional[list[str]] = None
    """
    Names
    """
    sweep_id: Optional[str] = None
    """
    With a network: the only sweep that shares it
    """


class Advice(Model):
    """
    How many attempts should share a GPU, and in which mode, by measured paces of ended attempts; absent = as many as memory, cores and activity allow
    """

    mode: Union[Literal['exclusive', 'time_slicing', 'mps'], str]
    """
    mps or time_slicing
    """
    at_once: int
    """
    Attempts that may share the GPU, 1 to 96; overrides the limits of cores and activity; 0 = not known
    """
    capped: bool
    """
    No more may share it: more were measured to gain nothing
    """
    trying: bool
    """
    Not measured yet; tried now
    """
    why: str
    """
    The measurements behind it, in plain words
    """


class HostPatch(Model):
    state: Union[Literal['ready', 'draining'], str]


class DevicePatch(Model):
    state: Union[Literal['ready', 'cordoned'], str]
    reason: Optional[str] = None
    """
    Why it is cordoned; trials that wait for it show the reason
    """


class Lease(Model):
    """
    What an attempt holds of a host, and of a GPU
    """

    attempt_id: str
    attempt_state: Union[Literal['placed', 'running', 'finished', 'abandoned'], str]
    number: int
    """
    Of the attempt in its trial
    """
    stage: str
    purpose: Union[Literal['run', 'probe'], str]
    """
    probe: it measures its shape, too
    """
    sweep_id: str
    sweep_name: str
    trial: int
    """
    Its number
    """
    host_id: str
    host_name: str
    device_id: Optional[str] = None
    """
    The GPU; absent = it holds none
    """
    demand: Demand
    activity_milli: Optional[int] = None
    """
    How busy it is expected to keep its GPU, in thousandths; absent = not known
    """
    state: Union[Literal['held', 'suspect'], str]
    since: AwareDatetime
    measured_bytes: Optional[int] = None
    """
    Most that it held of its host's memory in the newest interval of /attempts/{id}/memory; absent = not known (yet). Of a suspect lease, and of one whose worker is away, it is as old as measured_at says
    """
    measured_device_bytes: Optional[int] = None
    """
    The same of its GPU's memory
    """
    measured_at: Optional[AwareDatetime] = None
    """
    When that interval begins; absent = nothing was measured (yet)
    """


class LeaseList(Model):
    data: list[Lease]
    next_cursor: Optional[str] = None


class KeptHost(Model):
    """
    The host kept free for an attempt that has waited too long: no younger one goes there until the attempt fits or its turn is over, an hour at first; absent = none
    """

    id: str
    name: str
    device_id: Optional[str] = None
    """
    The GPU kept free; absent = the whole host
    """
    since: AwareDatetime


class Readiness(Model):
    ready: bool
    parts: dict[str, str]
    """
    Of database and temporal: ok, or why it does not answer
    """


class Finding(Model):
    """
    The state of one part
    """

    ok: bool
    warn: Optional[bool] = None
    """
    Not wrong yet, and will be before long; absent = no
    """
    part: str
    """
    Such as database, hosts or outbox
    """
    what: str
    """
    In plain words
    """
    next: Optional[str] = None
    """
    What to do about it; absent = nothing
    """


class Event(Model):
    sequence: int
    kind: str
    """
    Such as trial.state, sweep.state, attempt.running, attempt.finished, host.state or device.state
    """
    sweep_id: Optional[str] = None
    subject: str
    """
    Id of the thing
    """
    trial: Optional[int] = None
    """
    Number of the trial that it is about, or whose attempt; absent = it is about neither
    """
    data: Optional[Any] = None
    """
    Depends on the kind: mostly the new state
    """
    created_at: AwareDatetime


class Secret(Model):
    name: str
    version: int
    """
    1, then one more each time it is stored
    """
    key: str
    """
    Public part of the key that it is sealed to; workers that have the private part can run trials that mount it
    """
    created_at: AwareDatetime
    created_by: str
    """
    Name of a token
    """
    updated_at: AwareDatetime
    updated_by: str
    """
    Name of a token
    """


class SecretList(Model):
    data: list[Secret]


class SecretValue(Model):
    value: str
    """
    Of 1 byte to 64 KiB
    """
    encoding: Optional[Union[Literal['text', 'base64'], str]] = None
    """
    base64: for values that are no text
    """


class StoredSecret(Model):
    secret: Secret
    warnings: Optional[list[ProblemItem]] = None
    """
    Such as that the value is too short to be masked in logs
    """


class Token(Model):
    id: str
    name: str
    prefix: str
    """
    Its first characters
    """
    role: Union[Literal['viewer', 'operator', 'admin'], str]
    created_at: AwareDatetime
    expires_at: Optional[AwareDatetime] = None
    revoked_at: Optional[AwareDatetime] = None
    valid: bool
    """
    Neither revoked nor expired
    """


class TokenList(Model):
    data: list[Token]


class NewToken(Model):
    name: str
    role: Union[Literal['viewer', 'operator', 'admin'], str]
    expires_in_seconds: Optional[int] = None
    """
    Default: never
    """


class CreatedToken(Model):
    token: Token
    secret: str
    """
    Send it as Authorization Bearer; it cannot be shown again
    """


class NewSession(Model):
    token: str


class Me(Model):
    name: str
    """
    Of the token; local without one
    """
    role: Union[Literal['viewer', 'operator', 'admin'], str]
    known_by: Union[Literal['local', 'token', 'session'], str]
    """
    local: the owner of the machine, while no token was ever made; token: an Authorization header; session: the cookie
    """
    expires_at: Optional[AwareDatetime] = None
    """
    When the session ends; absent without one
    """


class ServerTemporal(Model):
    namespace: str
    """
    Where the workflows are
    """
    url: Optional[str] = None
    """
    Of Temporal's web UI; absent = the server was not told (--temporal-ui)
    """


class ServerLimits(Model):
    """
    What a caller may take
    """

    sweep_file_bytes: int
    page_rows: int
    """
    Of a list
    """
    requests_per_second: float
    """
    Per token, its sessions included
    """
    requests_at_once: int
    """
    The same for a burst
    """
    streams: int
    """
    Event and log streams open at once, per name
    """


class ServerRetention(Model):
    """
    How long this server keeps data after the end of its sweep; absent = no limit
    """

    sweeps_seconds: Optional[int] = None
    """
    A sweep with all that belongs to it
    """
    outputs_seconds: Optional[int] = None
    """
    Files of attempts, checkpoints included
    """


class Problem(Model):
    """
    RFC 9457
    """

    type: str
    """
    A URI that stands for the code
    """
    title: str
    """
    The same for every problem of a status
    """
    status: int
    detail: str
    """
    The problem, and how to solve it
    """
    code: str
    """
    A kind such as not_found, or E_… of a sweep file
    """
    errors: Optional[list[ProblemItem]] = None
    """
    Each thing that is wrong with the request
    """
    request_id: str
    """
    Also in the header X-Request-ID and the server's log
    """


class Sweep(Model):
    id: str
    name: str
    image: str
    """
    As the user wrote it
    """
    image_digest: str
    """
    What all trials run
    """
    state: Union[Literal['pending', 'running', 'paused', 'stopping', 'canceling', 'succeeded', 'failed', 'stopped', 'canceled'], str]
    reason: Optional[str] = None
    """
    Why it ended, or what a person must do
    """
    note: Optional[str] = None
    """
    Of people
    """
    max_parallel: int
    """
    0 = as many as fit
    """
    created_by: str
    created_at: AwareDatetime
    started_at: Optional[AwareDatetime] = None
    finished_at: Optional[AwareDatetime] = None
    counts: Counts
    objective: Optional[Objective] = None
    constraints: Optional[list[Constraint]] = None
    best: Optional[Best] = None
    eta: Optional[ETA] = None
    temporal_url: Optional[str] = None
    """
    Its workflow in Temporal's web UI, when the server knows where that is
    """
    warnings: Optional[list[ProblemItem]] = None
    """
    What the caller who made it should know; in the answer to that call only
    """
    spec: Optional[dict[str, Any]] = None


class SweepList(Model):
    data: list[Sweep]
    next_cursor: Optional[str] = None
    total: int
    """
    Sweeps that match, as counted for the first page; 10000 = that many or more
    """


class PreviewHost(Model):
    id: str
    name: str
    at_once: int
    binds: str
    """
    The dimension in which the next trial does not fit, or trials when there are no more
    """
    why: str
    at_once_now: Optional[int] = None
    """
    The same beside the running attempts, as if nothing else waited; absent = none
    """
    memory_bytes: Optional[int] = None
    """
    In all. Headroom, used by others and reserved can add up to more: a program outside Berth may use booked memory
    """
    memory_headroom_bytes: Optional[int] = None
    """
    Kept free on purpose
    """
    memory_used_by_others_bytes: Optional[int] = None
    """
    Used by programs outside Berth now; absent = nothing, or not known
    """
    memory_reserved_bytes: Optional[int] = None
    """
    Reservations of the running attempts, and of at_once_now trials of the sweep beside them
    """
    memory_sweep_bytes: Optional[int] = None
    """
    Of memory_reserved_bytes, the sweep's
    """
    spill_bytes: Optional[int] = None
    """
    Of memory_sweep_bytes, for what GPUs cannot hold (gpu_memory_spill); absent = nothing
    """
    devices: Optional[list[PreviewDevice]] = None
    """
    Absent = it has no GPU
    """


class LatestAttempt(Model):
    """
    The newest attempt of a trial, in lists of a sweep; absent = it had none
    """

    id: str
    number: int
    """
    From 1 in its trial
    """
    stage: str
    """
    The stage that it ran; main = the sweep's own command
    """
    state: Union[Literal['placed', 'running', 'finished', 'abandoned'], str]
    purpose: Union[Literal['run', 'probe'], str]
    """
    probe: it measures its shape, too
    """
    host_id: str
    host_name: str
    device_id: Optional[str] = None
    """
    The GPU; absent = it runs without one
    """
    memory_bytes: int
    """
    Reserved of the host's memory
    """
    device_bytes: Optional[int] = None
    """
    Reserved of the GPU's memory
    """
    memory_peak_bytes: int
    """
    Measured, once it has ended; 0 = not
    """
    device_peak_bytes: Optional[int] = None
    """
    The same of the GPU
    """
    last_metric: Optional[Metric] = None
    """
    The newest point of the objective's metric; of a sweep without an objective, of its first metric by name
    """
    metrics: Optional[list[Metric]] = None
    """
    The newest point of each metric that the query names
    """


class Usage(Model):
    """
    Measured use
    """

    memory_peak_bytes: int
    """
    0 = not measured
    """
    device_peak_bytes: Optional[int] = None
    framework_peak_bytes: Optional[int] = None
    """
    Most that the program's framework held of the GPU's memory, as the shim reports it; its context and libraries are not in it
    """
    device_phases: Optional[DevicePhases] = None
    steps: Optional[int] = None
    """
    Of its training that were timed, as the shim reports them
    """
    step_seconds: Optional[float] = None
    """
    Their mean; the first step of each epoch is not among them
    """
    device_activity: DeviceActivity
    cpu_seconds: float
    wall_seconds: float
    """
    From the container's start to its exit
    """
    samples: int
    cpu_throttled_share: Optional[float] = None
    """
    Of the time in which its processes ran, the part in which its limit of cores held them back; 0 to 1, absent = none, or not measured
    """
    cpu_contended: Optional[bool] = None
    """
    The machine had no cores to spare, so cpu_seconds may be less than needed
    """
    oom_kills: Optional[int] = None
    """
    Processes that the kernel killed for memory
    """


class Attempt(Model):
    id: str
    trial_id: str
    trial_number: Optional[int] = None
    """
    In lists of a sweep and a trial
    """
    shape_key: Optional[str] = None
    """
    In lists of a sweep and a trial
    """
    number: int
    """
    From 1 in its trial
    """
    stage: str
    purpose: Union[Literal['run', 'probe'], str]
    """
    probe: it measures its shape, too
    """
    state: Union[Literal['placed', 'running', 'finished', 'abandoned'], str]
    host_id: str
    device_id: Optional[str] = None
    """
    The GPU; absent = it runs without one
    """
    device_class: Optional[str] = None
    """
    The kind of device that it was placed on: cpu, or the model, the MIG profile, and (MPS) where attempts share it so
    """
    demand: Demand
    container_id: Optional[str] = None
    failure_kind: Optional[Union[Literal['ok', 'host_oom', 'device_oom', 'device_busy', 'too_big', 'user_error', 'bad_config', 'crashed', 'killed', 'preempted', 'timed_out', 'no_result', 'not_finite', 'no_device', 'image_missing', 'bad_command', 'neighbour_fault', 'infra', 'canceled', 'pruned', 'log_flood', 'disk_quota'], str]] = (
        None
    )
    """
    Absent = it has not ended
    """
    message: Optional[str] = None
    """
    In plain words, with the next step
    """
    resumed: Optional[str] = None
    """
    From which checkpoint the attempt went on, or why from none although an earlier attempt had one, in plain words; absent = there was none
    """
    exit_code: Optional[int] = None
    value: Optional[float] = None
    metric_source: Optional[Union[Literal['file', 'stdout', 'tensorboard', 'shim'], str]] = None
    """
    Source of the objective: the metrics file, standard output, event files, or the shim; absent = it was not reported, or its source was not recorded
    """
    usage: Usage
    placed_at: AwareDatetime
    started_at: Optional[AwareDatetime] = None
    finished_at: Optional[AwareDatetime] = None
    outputs_removed_at: Optional[AwareDatetime] = None
    """
    When its host was asked to remove its files
    """
    outputs_removed_why: Optional[str] = None
    """
    Which limit removed them, in plain words
    """
    datasets: Optional[dict[str, str]] = None
    """
    The data sets that it had: a version by name, which changes with the names, sizes and times of the files; empty = not known
    """


class AttemptList(Model):
    data: list[Attempt]
    next_cursor: Optional[str] = None


class SweepInsight(Model):
    trials: int
    """
    That count, in any state
    """
    from_trial: int
    """
    The first trial that counts; above 1 when more than 10,000 ended: the newest count
    """
    importance: list[InsightImportance]
    """
    By parameter with two values or more, most important first: PED-ANOVA, as Optuna has it
    """
    importance_of: InsightSample
    best: list[InsightBest]
    """
    Trials that were the best when they ended, in that order
    """
    front: Optional[list[InsightFront]] = None
    """
    With several objectives, the trials that no other one beats in all of them; the best at the first objective first
    """
    rungs: list[InsightRung]
    """
    Where early stopping judged these trials: the first 100 rungs
    """
    origins: list[InsightOrigin]
    """
    Most trials first
    """


class ReportTrial(Model):
    number: int
    attempts: list[ReportAttempt]


class DeviceUsage(Model):
    id: str
    """
    Of the GPU
    """
    points: list[UsagePoint]
    """
    Of the GPU's memory, ascending
    """


class AttemptMemory(Model):
    points: list[MemoryPoint]
    """
    Ascending
    """
    interval_seconds: int
    """
    What each point stands for: 1, or a power of 2; intervals without a point were not measured
    """
    host_reserved_bytes: int
    """
    What the attempt reserves, or did, of its host's memory
    """
    device_reserved_bytes: int
    """
    The same of its GPU's memory; 0 = it has no GPU
    """
    host_peak_bytes: Optional[int] = None
    """
    Most that it was measured to hold of its host's memory, as recorded at its end; absent = it goes on, or nothing was measured
    """
    device_peak_bytes: Optional[int] = None
    """
    The same of its GPU's memory. What its framework says that it held at its most counts, too
    """


class CurveList(Model):
    data: list[Curve]
    name: str
    """
    The metric
    """


class FileList(Model):
    data: list[File]
    next_cursor: Optional[str] = None
    """
    Absent = this was the last page
    """
    attempt_id: str
    attempt: int
    """
    Its number in its trial
    """
    state: Union[Literal['pending', 'stored', 'lost', 'removed', 'off'], str]
    """
    What became of an attempt's files: pending = they are stored when it has ended, or at the next try; stored; lost = they were not stored and never will be; removed = a limit removed them; off = no store is set up
    """
    problem: Optional[str] = None
    """
    Why its files are not stored, in plain words; of pending ones why the last try failed
    """
    files: int
    """
    How many are stored
    """
    bytes: int
    """
    Of them
    """
    left_out: int
    """
    How many are not stored
    """
    left_out_files: list[LeftOutFile]
    """
    The first 1,000 of them, in the first page
    """


class MetricNameList(Model):
    data: list[MetricName]


class FailureList(Model):
    data: list[FailureReason]


class Diagnosis(Model):
    """
    What limits the program on its GPU, and what a person can do; absent in lists, for cores, and where nothing was measured
    """

    label: Optional[Union[Literal['compute_bound', 'memory_bound', 'input_bound', 'latency_bound'], str]] = None
    """
    Absent = how busy it keeps the GPU does not say
    """
    why: Optional[str] = None
    """
    The figures that decide the label, or why there is none
    """
    advice: list[AdvicePiece]
    """
    The most useful first
    """


class Stage(Model):
    key: str
    """
    SHA-256 of all that the output depends on
    """
    stage: str
    """
    Its name
    """
    sweep_id: str
    """
    Sweep of the trial
    """
    sweep_name: str
    trial: int
    """
    Number of the trial that ran it; without an output, of the newest trial that uses it
    """
    output: Optional[StageOutput] = None
    """
    Absent = it has no output yet
    """
    open_trials: int
    """
    Trials that use it and have not ended
    """
    ended_trials: int
    held: bool
    """
    An unfinished trial needs it, or a container reads it: it cannot be forgotten
    """
    parts: Optional[StageParts] = None
    """
    What the key is made of, only of one stage; absent = another version of Berth made the key
    """
    why: Optional[str] = None
    """
    The first part in which it differs from the nearest key of this stage, in plain words; only of one stage
    """


class StageList(Model):
    data: list[Stage]
    next_cursor: Optional[str] = None


class Device(Model):
    """
    A GPU, or a part of one that MIG made a GPU of its own
    """

    id: str
    """
    Its UUID
    """
    host_id: str
    model: str
    profile: Optional[str] = None
    """
    Of a MIG device; absent = a whole GPU
    """
    class_: str = Field(..., alias='class')
    """
    Its kind; what a shape needs is known for each class apart
    """
    mode: Union[Literal['exclusive', 'time_slicing', 'mps'], str]
    """
    How its attempts share it: now, or when it last had some
    """
    memory_bytes: int
    default_mode_bytes: Optional[int] = None
    """
    What one TensorFlow process reserves of it in its default mode, estimated as the report of a sweep does; absent = it is too small for one
    """
    headroom_bytes: int
    """
    Kept free on purpose
    """
    reserved_bytes: int
    free_bytes: int
    """
    memory_bytes less what processes outside Berth use now. Reservations and headroom are still in it: what new trials can get is the smaller of this and memory_bytes - headroom_bytes, less reserved_bytes
    """
    used_by_others_bytes: Optional[int] = None
    """
    What processes outside Berth use of its memory, as measured last; absent = nothing, or not known as there is a problem
    """
    simulated: Optional[bool] = None
    """
    No real GPU: the worker was started with --fake-gpus; absent = it is real
    """
    max_contexts: int
    """
    Processes that it takes at once
    """
    mps_contexts: Optional[int] = None
    """
    Clients that its MPS daemon takes; absent = it is not shared by MPS
    """
    contexts_reserved: int
    activity_reserved: Optional[int] = None
    """
    Thousandths: how busy its attempts were measured to keep such a GPU, added up
    """
    max_attempts: int
    """
    0 = no limit
    """
    attempts: int
    """
    That hold a reservation
    """
    exclusive: Optional[bool] = None
    """
    One of them has the GPU for itself
    """
    problem: Optional[str] = None
    """
    Why it takes no attempts, in plain words; absent = it takes them
    """
    mps_problem: Optional[str] = None
    """
    Why it takes no clients of MPS now, though it has a daemon; others it takes
    """
    cordoned_at: Optional[AwareDatetime] = None
    """
    Since when it takes no new attempts, because a person has cordoned it; absent = it is not so
    """
    cordon_reason: Optional[str] = None
    """
    In the person's words
    """
    advice: Optional[Advice] = None


class QueuedAttempt(Model):
    """
    An attempt that waits for a place
    """

    position: int
    """
    From 1, when the page was read
    """
    attempt_id: str
    """
    Of the attempt that it becomes
    """
    number: int
    """
    Of the attempt in its trial
    """
    stage: str
    purpose: Union[Literal['run', 'probe'], str]
    """
    probe: it measures its shape, too
    """
    sweep_id: str
    sweep_name: str
    sweep_state: Union[Literal['pending', 'running', 'paused', 'stopping', 'canceling', 'succeeded', 'failed', 'stopped', 'canceled'], str]
    trial: int
    """
    Its number
    """
    since: AwareDatetime
    """
    When it asked, or its sweep was resumed
    """
    not_before: Optional[AwareDatetime] = None
    """
    It is put off until then; absent = it is not
    """
    waiting: list[Rejection]
    """
    Why it has no place, candidate by candidate; empty = the placer has not looked at it yet
    """
    kept_host: Optional[KeptHost] = None
    blocker_ends_at: Optional[AwareDatetime] = None
    """
    Expected end of the first attempt that blocks it: that attempt's start plus the median time of the newest trials of its sweep. Passed = any moment; absent = not known, as it waits for something else, or fewer than 3 such trials have ended
    """


class QueueList(Model):
    data: list[QueuedAttempt]
    next_cursor: Optional[str] = None
    total: int
    """
    Waiting attempts in all; 0 on a page without rows
    """


class Health(Model):
    ok: bool
    findings: list[Finding]


class ServerInfo(Model):
    version: str
    """
    Of the server's program, as its build recorded it; (devel) = a build without a version
    """
    token_needed: bool
    """
    Calls like this one need a token or a session; false = the caller is known as local
    """
    temporal: ServerTemporal
    limits: ServerLimits
    retention: ServerRetention


class Preview(Model):
    trials: int
    """
    In all; 0 = not known before it ends
    """
    enumerated: int
    """
    How many trials were looked at to find the shapes
    """
    complete: bool
    """
    Every trial was looked at
    """
    shapes: list[PreviewShape]
    """
    At most 200
    """
    shapes_total: int
    """
    Found among the enumerated trials
    """
    probes_needed: int
    probes_cached: int
    at_once: int
    """
    Trials that run at once when nothing else of Berth is on the machines, 500 at most; 0 = none can
    """
    why: str
    """
    Why no more
    """
    hosts: list[PreviewHost]
    waves: int
    """
    Trials / at_once, rounded up; 0 = not known
    """
    duration: Optional[PreviewDuration] = None
    stages: Optional[list[PreviewStage]] = None
    """
    In the order of the file
    """
    warnings: list[ProblemItem]
    image: Optional[str] = None
    image_digest: Optional[str] = None
    """
    Absent when no machine could say; then nothing counts as probed
    """


class Trial(Model):
    id: str
    sweep_id: str
    number: int
    params: dict[str, Any]
    shape_key: str
    state: Union[Literal['pending', 'probing', 'waiting', 'running', 'succeeded', 'failed', 'infeasible', 'canceled', 'pruned'], str]
    failure_kind: Optional[Union[Literal['ok', 'host_oom', 'device_oom', 'device_busy', 'too_big', 'user_error', 'bad_config', 'crashed', 'killed', 'preempted', 'timed_out', 'no_result', 'not_finite', 'no_device', 'image_missing', 'bad_command', 'neighbour_fault', 'infra', 'canceled', 'pruned', 'log_flood', 'disk_quota'], str]] = (
        None
    )
    """
    Of the attempt that decided
    """
    message: Optional[str] = None
    """
    In plain words, with the next step
    """
    note: Optional[str] = None
    """
    Of people
    """
    origin: Origin
    value: Optional[float] = None
    """
    Of the objective; absent = none yet, or a constraint is broken
    """
    results: Optional[dict[str, float]] = None
    attempts: int
    created_at: AwareDatetime
    started_at: Optional[AwareDatetime] = None
    finished_at: Optional[AwareDatetime] = None
    waiting: Optional[list[Rejection]] = None
    """
    Why it does not run, candidate by candidate
    """
    kept_host: Optional[KeptHost] = None
    waiting_since: Optional[AwareDatetime] = None
    """
    When it asked for the place that it waits for; in lists of a sweep
    """
    latest_attempt: Optional[LatestAttempt] = None
    outputs_removed: Optional[str] = None
    """
    Why the files of its last attempt were removed, in plain words; absent = they were not
    """
    rungs: Optional[list[Rung]] = None
    """
    Where early stopping judged it; not in lists
    """
    temporal_url: Optional[str] = None
    """
    Its workflow in Temporal's web UI, when the server knows where that is
    """


class TrialList(Model):
    data: list[Trial]
    next_cursor: Optional[str] = None
    total: int
    """
    Trials that match, as counted for the first page; 100000 = that many or more
    """


class SweepReport(Model):
    """
    What a sweep used. An attempt counts from its container's start to its end
    """

    sweep_id: str
    state: Union[Literal['pending', 'running', 'paused', 'stopping', 'canceling', 'succeeded', 'failed', 'stopped', 'canceled'], str]
    ended: bool
    """
    false: the figures are those so far
    """
    as_of: AwareDatetime
    """
    Attempts that run count until then
    """
    gpu: ReportTotals
    cores: ReportTotals
    places: list[ReportPlace]
    """
    Each GPU, and each host whose cores ran attempts without a GPU
    """
    losses: list[ReportLoss]
    """
    Attempts that gave no result, by cause, the most time first
    """
    stages: Optional[list[ReportStage]] = None
    """
    In the order in which they run
    """
    missing_trials: int
    """
    Trials with a result whose attempts are not in the database; what they used is missing
    """
    notes: list[str]
    """
    The figures in plain sentences
    """
    trials: list[ReportTrial]
    """
    A page of the trials that had an attempt, by number
    """
    next_cursor: Optional[str] = None
    """
    Of the trials
    """


class HostUsage(Model):
    interval_seconds: int
    """
    What each point stands for; of intervals without a point nothing was told
    """
    points: list[UsagePoint]
    """
    Of the machine's own memory, ascending
    """
    devices: list[DeviceUsage]


class Footprint(Model):
    """
    Measured need of a shape on one class of device
    """

    device_class: str
    """
    cpu, or a GPU's model, its MIG profile, and (MPS) where attempts share it so
    """
    source: Union[Literal['full', 'short', 'partial', 'raised', 'predicted'], str]
    """
    How it was measured: in a whole run, in two epochs, in a part of a run, or by an out-of-memory alone
    """
    samples: int
    """
    Attempts that were measured
    """
    memory_peak_bytes: int
    memory_floor_bytes: Optional[int] = None
    """
    A reservation of this size ran out of memory
    """
    device_peak_bytes: Optional[int] = None
    """
    Of the GPU's memory
    """
    device_phases: Optional[DevicePhases] = None
    step_seconds: Optional[float] = None
    """
    Mean of a training step in the newest attempt that timed them (GET /probes/{id} alone)
    """
    device_activity: DeviceActivity
    cpu_milli: int
    """
    Mean cores used, in thousandths; 0 = not known, because the machine was crowded
    """
    duration_seconds: float
    """
    Mean of a whole attempt
    """
    measured_at: AwareDatetime
    reserved_bytes: int
    """
    What the next attempt would reserve of a host's memory
    """
    device_reserved_bytes: Optional[int] = None
    """
    The same of its GPU's memory; absent = nothing is known of it
    """
    diagnosis: Optional[Diagnosis] = None


class Probe(Model):
    shape_key: str
    shape: Shape
    footprints: list[Footprint]
    """
    One for each class of device, cpu first
    """


class ProbeList(Model):
    data: list[Probe]
    next_cursor: Optional[str] = None


class Host(Model):
    id: str
    name: str
    state: Union[Literal['ready', 'draining', 'unready', 'lost'], str]
    """
    draining: a person asked for no new attempts; unready: its worker reports a problem; lost: its worker is silent
    """
    problem: Optional[str] = None
    """
    Why the host's worker takes no attempts, when it is unready
    """
    datasets: Optional[list[str]] = None
    """
    Data sets that trials may mount there, as NAME@VERSION, or NAME until the worker has read its version
    """
    cpu_milli: int
    """
    Thousandths of a core
    """
    cpu_milli_reserved: int
    memory_bytes: int
    memory_headroom_bytes: int
    """
    Kept free on purpose
    """
    memory_reserved_bytes: int
    memory_free_bytes: int
    """
    memory_bytes less what programs outside Berth use now. Reservations and headroom are still in it: what new trials can get is the smaller of this and memory_bytes - memory_headroom_bytes, less memory_reserved_bytes
    """
    used_by_others_bytes: Optional[int] = None
    """
    What programs outside Berth use of its memory, as measured last; absent = nothing, or not known as there is a problem
    """
    disk_free_bytes: int
    """
    On the fuller of the disks that trials write to
    """
    disk_headroom_bytes: int
    """
    Kept free on purpose; with less, nothing new starts
    """
    disk_bytes: Optional[int] = None
    """
    Of that disk in all; absent = not known
    """
    output_bytes: Optional[int] = None
    """
    What files of attempts take there; absent = not known
    """
    disk_warning: Optional[str] = None
    """
    That the disk will be full before long, in plain words; absent = there is room
    """
    max_attempts: int
    """
    0 = no limit
    """
    attempts: int
    """
    That hold a reservation
    """
    exclusive: Optional[bool] = None
    """
    One of them has the host for itself
    """
    devices: list[Device]
    last_seen_at: AwareDatetime
    cordoned_at: Optional[AwareDatetime] = None
    """
    Since when it takes only test attempts, because it failed to start several trials in a row
    """
    cordon_reason: Optional[str] = None
    """
    The last of these failures
    """
    cordon_sweep: Optional[str] = None
    """
    Only this sweep is kept away, because only its trials failed; absent = all are
    """


class HostList(Model):
    data: list[Host]


Objective.model_rebuild()
