package temporal

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/berthml/berth"
)

// installationWorkflow is the workflow that keeps the installation's id in a
// namespace. No worker runs it, so it never ends: to start a workflow takes no
// rights that a sweep does not take, and its id can be taken only once. Its
// name is also its type and its queue.
const installationWorkflow = "berth-installation"

// memoInstallation is the key of the id in the memo of that workflow.
const memoInstallation = "installation"

// errStoreLost is in every alarm about a namespace that was lost.
var errStoreLost = errors.New("its store was lost")

// Installations is the database's record of the installation.
type Installations interface {
	Installation(ctx context.Context) (berth.Installation, error)
	BindTemporal(ctx context.Context) error
	SetAlarm(ctx context.Context, text string) (changed bool, err error)
	BeginHistory(ctx context.Context) error
}

// Identity binds the namespace to the installation: it binds a new one, refuses
// another installation's, and raises an alarm for a bound one that has lost the
// binding.
type Identity struct {
	Ledger Installations
	Client *Client
	Log    *slog.Logger

	bound atomic.Bool // at the last look
}

// Bound reports whether the namespace was this installation's at the last look.
// While it is not, its workflows get no messages.
func (i *Identity) Bound() bool { return i.bound.Load() }

// Run looks at the namespace again and again until ctx ends. It fails when the
// namespace turns out to be another installation's.
func (i *Identity) Run(ctx context.Context) error {
	return repeat(ctx, func() error {
		_, err := i.Check(ctx)
		if berth.KindOf(err) == berth.KindInvalid {
			return err
		}

		if err != nil && ctx.Err() == nil {
			i.Log.Info("asking Temporal for the installation", "error", err)
		}

		return nil
	})
}

// repeat looks now and every 10 s, until ctx ends or a look fails.
func repeat(ctx context.Context, look func() error) error {
	ticker := time.NewTicker(orphanEvery)
	defer ticker.Stop()

	for {
		if err := look(); err != nil || ctx.Err() != nil {
			return cmp.Or(ctx.Err(), err)
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// Check looks at the namespace and binds it when neither it nor the database was
// bound before. It returns false and raises an alarm when the namespace has lost its
// content: its workflows are gone and must not be taken for ended.
func (i *Identity) Check(ctx context.Context) (bound bool, err error) {
	ours, err := i.Ledger.Installation(ctx)
	if err != nil {
		return false, err
	}

	there, err := i.Client.bindingOf(ctx, ours)
	if errors.Is(err, errStoreLost) {
		i.bound.Store(false)

		return false, i.alarm(ctx, err.Error())
	}

	if err == nil && (there == nil || !there.open) {
		err = i.Client.bind(ctx, ours.ID)
	}

	if err == nil && ours.BoundAt == nil {
		err = i.Ledger.BindTemporal(ctx)
	}

	if err == nil && strings.Contains(ours.Alarm, errStoreLost.Error()) { // set before Restore, or by a server with another Temporal
		err = i.alarm(ctx, "")
	}

	if err == nil {
		i.bound.Store(true)
	}

	return err == nil, err
}

func (i *Identity) alarm(ctx context.Context, text string) error {
	changed, err := i.Ledger.SetAlarm(ctx, text)
	if changed && text != "" {
		i.Log.Error(text)
	}

	return err
}

// binding is the namespace's record of its installation.
type binding struct {
	id   string
	open bool // false: a person ended the workflow that keeps it
}

// BelongsTo looks whether the namespace may serve an installation, and changes
// nothing. Errors: invalid when it is another's; unavailable when it has
// forgotten this one.
func (c *Client) BelongsTo(ctx context.Context, ours berth.Installation) error {
	_, err := c.bindingOf(ctx, ours)

	return err
}

// bindingOf reads the namespace's record of an installation; nil = there is none yet.
// Errors: as BelongsTo, with errStoreLost for a forgotten one.
func (c *Client) bindingOf(ctx context.Context, ours berth.Installation) (*binding, error) {
	there, err := c.binding(ctx)

	switch {
	case err != nil:
		return nil, err
	case there == nil && ours.BoundAt != nil:
		return nil, berth.Errorf(berth.KindUnavailable, "namespace %q of Temporal belonged to this installation and knows nothing of it any more: "+
			"%w, or another Temporal answers; no sweep is ended for that, and containers go on", c.namespace, errStoreLost)
	case there != nil && there.id != ours.ID:
		return nil, berth.Errorf(berth.KindInvalid, "namespace %q of Temporal belongs to installation %s, and this database to installation %s: "+
			"give another --temporal-namespace, or the --postgres-url of that installation", c.namespace, there.id, ours.ID)
	default:
		return there, nil
	}
}

// binding reads the namespace's record; nil = none.
func (c *Client) binding(ctx context.Context) (*binding, error) {
	got, err := c.temporal.DescribeWorkflowExecution(ctx, installationWorkflow, "")
	if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
		return nil, nil //nolint:nilnil // nothing is an answer
	}

	if err != nil {
		return nil, translate(err, "reading which installation the namespace belongs to")
	}

	info := got.GetWorkflowExecutionInfo()
	b := &binding{open: goesOn(info.GetStatus())}

	if err := converter.GetDefaultDataConverter().FromPayload(info.GetMemo().GetFields()[memoInstallation], &b.id); err != nil {
		return nil, berth.Errorf(berth.KindInternal, "reading memo %q of workflow %q: %w", memoInstallation, installationWorkflow, err)
	}

	return b, nil
}

// bind writes the installation's id into the namespace. If two processes do so at
// once, one fails and finds the other at its next look.
func (c *Client) bind(ctx context.Context, id string) error {
	_, err := c.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: installationWorkflow, TaskQueue: installationWorkflow,
		WorkflowIDReusePolicy:                    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy:                 enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		Memo:                                     map[string]any{memoInstallation: id},
		StaticSummary:                            "leave it: names the Berth that this namespace belongs to",
		StaticDetails: "Berth keeps the id of its installation here. No worker runs this workflow. " +
			"When it is gone, Berth takes the workflows of its sweeps for lost, and a person has to decide.",
	}, installationWorkflow)

	return translate(err, "binding namespace "+c.namespace+" of Temporal to the installation")
}
