package temporal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/berthml/berth"
	"github.com/berthml/berth/workflows"
)

// installationWorkflow is the workflow that keeps the installation's id in a
// namespace. No worker runs it, so it never ends: to start a workflow takes no
// rights that a sweep does not take, and its id can be taken only once. Its
// name is also its type and its queue.
const installationWorkflow = "berth-installation"

// Keys of the memo of that workflow.
const (
	memoInstallation = "installation"
	memoDatabase     = "database"
	memoReplaced     = "replaced" // the databases that this one has replaced
	memoCopy         = "copy"     // copyUnknown: the database may be a restored copy of the installation's own
)

// copyUnknown marks a binding that Adopt made without being told that the database
// replaces the original: it may be a restore drill's.
const copyUnknown = "unknown"

// storeLost is in every alarm about a namespace that was lost.
const storeLost = "its store was lost"

// lostPatience is for how long a process that finds the namespace lost waits for
// another one that does not, before it raises the alarm: more than two looks.
const lostPatience = 2*orphanEvery + 5*time.Second

// Installations is what the database knows of the installation.
type Installations interface {
	Installation(ctx context.Context) (berth.Installation, error)
	BindTemporal(ctx context.Context) error
	OwnDatabase(ctx context.Context, database, replaced string) error
	SetAlarm(ctx context.Context, text string) (changed bool, err error)
	BeginHistory(ctx context.Context) error
	SweepRecord(ctx context.Context, id string) (berth.Sweep, error)
}

// Identity holds the namespace to the installation: it binds one that is new,
// refuses one that is another's, and raises an alarm for one that was bound
// and has forgotten it.
type Identity struct {
	Ledger   Installations
	Client   *Client
	Log      *slog.Logger
	Patience time.Duration // for another process that is bound, before an alarm; default 25 s

	bound atomic.Bool // at the last look
	lost  loss
}

// loss is for how long a process finds the namespace lost while no other process
// says that it is bound.
type loss struct {
	mu      sync.Mutex
	since   time.Time // zero = it is not lost
	boundAt time.Time // when a process was bound last
	told    bool      // that another one is
}

// Bound reports whether the namespace was this installation's at the last
// look. While it is not, nothing is told to its workflows.
func (i *Identity) Bound() bool { return i.bound.Load() }

// Run looks at the namespace again and again until ctx ends. It fails when the
// namespace turns out to be another installation's.
func (i *Identity) Run(ctx context.Context) error {
	return i.repeat(ctx, func() error {
		_, err := i.Check(ctx)

		if i.Bound() && berth.KindOf(err) != berth.KindInvalid { // so that no other process takes the namespace for lost, also while Temporal is away
			if err := i.Ledger.BindTemporal(ctx); err != nil && ctx.Err() == nil {
				i.Log.Info("noting that Temporal is bound", "error", err)
			}
		}

		return err
	})
}

// repeat looks every 10 s until ctx ends. It fails when a look finds that the namespace is
// another's.
func (i *Identity) repeat(ctx context.Context, look func() error) error {
	ticker := time.NewTicker(orphanEvery)
	defer ticker.Stop()

	for {
		err := look()

		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case berth.KindOf(err) == berth.KindInvalid:
			return err
		case err != nil:
			i.Log.Info("asking Temporal for the installation", "error", err)
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// Check looks at the namespace and binds it when neither it nor the database
// was bound before. It returns false when the namespace has lost what was in it:
// its workflows are gone and must not be taken for ended. When that lasts and no
// other process is bound, which would mean that this one asks another Temporal,
// it raises an alarm.
// Errors: invalid when the namespace belongs to another installation, or to
// the database of which this one is a copy.
func (i *Identity) Check(ctx context.Context) (bound bool, err error) {
	bound, err = i.check(ctx)
	if err == nil {
		i.bound.Store(bound)
	}

	if err != nil || bound {
		i.lost.over()
	}

	return bound, err
}

func (i *Identity) check(ctx context.Context) (bound bool, err error) {
	ours, err := i.Ledger.Installation(ctx)
	if err != nil {
		return false, err
	}

	there, err := i.Client.binding(ctx)
	if err != nil {
		return false, err
	}

	switch {
	case there == nil && ours.BoundAt != nil:
		return false, i.lose(ctx, *ours.BoundAt)
	case there == nil:
		err = i.bindFirst(ctx, ours)
	case there.id != ours.ID || there.foreign(ours):
		return false, i.refuse(ctx, there, ours)
	case !there.open:
		err = i.Client.bind(ctx, ours, there.copied)
	}

	if err == nil && ours.BoundAt == nil {
		err = i.Ledger.BindTemporal(ctx)
	}

	if err == nil && !ours.Own() && (there == nil || there.proves(ours)) {
		err = i.Ledger.OwnDatabase(ctx, ours.Database, "")
	}

	if err == nil && strings.Contains(ours.Alarm, storeLost) { // of a process that asks another Temporal, or of before Adopt
		err = i.alarm(ctx, "")
	}

	return err == nil, err
}

// lose raises an alarm once the namespace has been lost for long enough, and no
// other process was bound meanwhile.
func (i *Identity) lose(ctx context.Context, boundAt time.Time) error {
	lasts, another := i.lost.look(boundAt)

	if another {
		i.Log.Error("another process of this installation is bound to a Temporal that knows it, and this one's does not: correct --temporal-address or --temporal-namespace",
			"namespace", i.Client.namespace)
	}

	if lasts < cmp.Or(i.Patience, lostPatience) {
		return nil
	}

	return i.alarm(ctx, i.Client.lost())
}

// look notes that the namespace is lost, and when a process was bound last. It
// returns for how long none was, and whether one is, once.
func (l *loss) look(boundAt time.Time) (lasts time.Duration, another bool) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.since.IsZero() || !boundAt.Equal(l.boundAt) {
		another = !l.since.IsZero() && !l.told
		l.told = l.told || another
		l.since, l.boundAt = time.Now(), boundAt
	}

	return time.Since(l.since), another
}

func (l *loss) over() {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.since = time.Time{}
}

// bindFirst binds a namespace that keeps no id, unless sweeps run in it that
// the database does not know: then an installation of before ids were kept has
// it.
func (i *Identity) bindFirst(ctx context.Context, ours berth.Installation) error {
	ids, err := i.Client.runningSweeps(ctx)
	if err != nil {
		return err
	}

	for _, id := range ids {
		if _, err := i.Ledger.SweepRecord(ctx, id); berth.KindOf(err) == berth.KindNotFound {
			return berth.Errorf(berth.KindInvalid, "sweep %s runs in namespace %q of Temporal and is not in this database: "+
				"another installation uses the namespace; give another --temporal-namespace, or the --postgres-url of that installation",
				id, i.Client.namespace)
		} else if err != nil {
			return err
		}
	}

	return i.Client.bind(ctx, ours, false)
}

func (i *Identity) alarm(ctx context.Context, text string) error {
	changed, err := i.Ledger.SetAlarm(ctx, text)
	if changed && text != "" {
		i.Log.Error(text)
	}

	return err
}

// binding is what a namespace says of the installation that it belongs to.
type binding struct {
	id, database string
	open         bool     // false: a person ended the workflow that keeps it
	copied       bool     // the database may be a restored copy: see copyUnknown
	replaced     []string // and the database itself
	saysReplaced bool     // false: nothing of replaced is written, as earlier versions bound
}

// foreign reports whether the namespace is bound to another database than the
// one that says it is of the same installation: one of them is a copy.
func (b *binding) foreign(ours berth.Installation) bool {
	return b.database != "" && ours.Database != "" && b.database != ours.Database
}

// BelongsTo looks whether the namespace may serve an installation, and changes
// nothing. Errors: invalid when it is another's; unavailable when it has
// forgotten this one.
func (c *Client) BelongsTo(ctx context.Context, ours berth.Installation) error {
	there, err := c.binding(ctx)

	switch {
	case err != nil:
		return err
	case there == nil && ours.BoundAt != nil:
		return berth.Errorf(berth.KindUnavailable, "%s", c.lost())
	case there != nil && (there.id != ours.ID || there.foreign(ours)):
		return c.refusal(there, ours)
	default:
		return nil
	}
}

func (c *Client) lost() string {
	return fmt.Sprintf("namespace %q of Temporal belonged to this installation and knows nothing of it any more: "+
		"%s, or another Temporal answers; no sweep is ended for that, and containers go on", c.namespace, storeLost)
}

func (c *Client) refusal(there *binding, ours berth.Installation) error {
	if there.id == ours.ID {
		return berth.Errorf(berth.KindInvalid, "namespace %q of Temporal is used by another copy of this database (installation %s): "+
			"give the --postgres-url of the one in use or another --temporal-namespace; "+
			"if this copy replaces it for good, run `berth adopt-temporal --replace-original` first", c.namespace, ours.ID)
	}

	return berth.Errorf(berth.KindInvalid, "namespace %q of Temporal belongs to installation %s, and this database to installation %s: "+
		"give another --temporal-namespace, or the --postgres-url of that installation", c.namespace, there.id, ours.ID)
}

// binding reads what the namespace keeps; nil = nothing.
func (c *Client) binding(ctx context.Context) (*binding, error) {
	got, err := c.temporal.DescribeWorkflowExecution(ctx, installationWorkflow, "")
	if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
		return nil, nil //nolint:nilnil // nothing is an answer
	}

	if err != nil {
		return nil, translate(err, "reading which installation the namespace belongs to")
	}

	info := got.GetWorkflowExecutionInfo()
	b := &binding{open: open(info.GetStatus())}

	var copied string

	for key, into := range map[string]any{memoInstallation: &b.id, memoDatabase: &b.database, memoReplaced: &b.replaced, memoCopy: &copied} {
		if err := converter.GetDefaultDataConverter().FromPayload(info.GetMemo().GetFields()[key], into); err != nil {
			return nil, berth.Errorf(berth.KindInternal, "reading memo %q of workflow %q: %w", key, installationWorkflow, err)
		}
	}

	b.copied = copied != ""
	_, b.saysReplaced = info.GetMemo().GetFields()[memoReplaced]

	return b, nil
}

// bind writes the installation's id into the namespace, which databases it has replaced,
// and whether it may be a restored copy. Of two that do so at once, one fails and finds the other
// at its next look.
func (c *Client) bind(ctx context.Context, i berth.Installation, copied bool) error {
	// Temporal 1.30 and newer keep no empty list, so the database itself is in it, too.
	memo := map[string]any{memoInstallation: i.ID, memoDatabase: i.Database, memoReplaced: append([]string{i.Database}, i.Replaced()...)}
	if copied {
		memo[memoCopy] = copyUnknown
	}

	_, err := c.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: installationWorkflow, TaskQueue: installationWorkflow,
		WorkflowIDReusePolicy:                    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy:                 enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		Memo:                                     memo,
		StaticSummary:                            "leave it: names the Berth that this namespace belongs to",
		StaticDetails: "Berth keeps the id of its installation here. No worker runs this workflow. " +
			"When it is gone, Berth takes the workflows of its sweeps for lost, and a person has to decide.",
	}, installationWorkflow)
	if err != nil {
		return translate(err, "binding namespace "+c.namespace+" of Temporal to the installation")
	}

	return c.durable()
}

// unbind ends the workflow that keeps an earlier binding.
func (c *Client) unbind(ctx context.Context) error {
	err := c.temporal.TerminateWorkflow(ctx, installationWorkflow, "", "a person ran berth adopt-temporal")

	return translate(err, "ending the earlier binding of namespace "+c.namespace)
}

// sweepsLooked is how many running sweeps are compared with the database
// before a namespace is bound: one that is not there is enough.
const sweepsLooked = 100

// runningSweeps returns the ids of sweeps whose workflows run.
func (c *Client) runningSweeps(ctx context.Context) ([]string, error) {
	got, err := c.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: "WorkflowType = 'SweepWorkflow' AND ExecutionStatus = 'Running'", PageSize: sweepsLooked,
	})
	if err != nil {
		return nil, translate(err, "listing running sweeps")
	}

	var ids []string

	for _, e := range got.GetExecutions() {
		if id, ok := strings.CutPrefix(e.GetExecution().GetWorkflowId(), workflows.SweepWorkflowID("")); ok {
			ids = append(ids, id)
		}
	}

	return ids, nil
}
