package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/control/preview"
	"github.com/berthml/berth/internal/search"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

// submission is a sweep that a caller submits.
type submission struct {
	spec  func() (berth.Spec, error) // asked for when no earlier call made the sweep
	route string
	key   string // idempotency; empty = none
	body  []byte // the caller's body, for which the key stands

	learned string // a sweep: the search learns from what its search did; empty = from what the spec names
}

// submit stores a sweep, or finds the sweep of the same call, made before: that one needs
// no machine, no image's registry, no free place in the quota. Temporal need not answer:
// the sweep's workflow is started from the outbox.
func (s *Server) submit(ctx context.Context, want submission) (out openapi.Sweep, created bool, err error) {
	hash := sha256.Sum256(want.body)
	by := berth.SubmissionKey{Person: caller(ctx).name, Route: want.route, Key: want.key, BodyHash: hash[:]}
	id := ""

	if want.key != "" {
		if id, err = s.deps.Store.SubmittedSweep(ctx, by); err != nil {
			return out, false, keyError(err)
		}
	}

	var warnings []berth.Problem

	if id == "" {
		if id, created, warnings, err = s.acceptSweep(ctx, want, by); err != nil {
			return out, false, err
		}
	}

	sweep, err := s.deps.Store.GetSweep(ctx, id)
	if err != nil {
		return out, false, err
	}

	out, err = s.toSweep(sweep, true)
	out.Warnings = toItems(warnings)

	return out, created, err
}

// keyError says that a key was used for another body.
func keyError(err error) error {
	if err != nil && berth.KindOf(err) == berth.KindConflict {
		return &httpError{status: http.StatusConflict, code: codeIdempotency, detail: err.Error()}
	}

	return err
}

// acceptSweep checks the rules that need the machines, resolves the image and stores
// the sweep.
func (s *Server) acceptSweep(ctx context.Context, want submission, by berth.SubmissionKey) (id string, created bool, warnings []berth.Problem, err error) {
	sent, err := want.spec()
	if err != nil {
		return "", false, nil, err
	}

	checked := sent
	if want.learned != "" {
		checked.Search.From = nil
	}

	problems, hosts, from, err := s.problems(ctx, checked)
	if err != nil {
		return "", false, nil, err
	}

	sent, unclear := spec.PinDatasets(sent, capacity(hosts).Hosts)
	problems = append(problems, unclear...)

	if len(problems) > 0 {
		return "", false, nil, &berth.SpecError{Problems: problems}
	}

	if err := s.checkQuota(ctx); err != nil {
		return "", false, nil, err
	}

	digest, sent, warnings, err := pinImages(ctx, sent, s.resolve)
	if err != nil {
		return "", false, nil, err
	}

	id, created, err = s.deps.Store.CreateSweep(ctx, berth.NewSweep{
		ID: uuid.NewString(), Spec: sent, ImageDigest: digest, Planned: preview.Planned(sent), From: from, PriorsOf: want.learned,
		CreatedBy: by.Person, Route: by.Route, Key: by.Key, BodyHash: by.BodyHash,
	})
	if want.key != "" {
		err = keyError(err)
	}

	return id, created, warnings, err
}

// pinImages finds the digests of the images of a sweep and its stages.
func pinImages(ctx context.Context, want berth.Spec, find func(ctx context.Context, ref string) (string, []berth.Problem, error)) (
	digest string, pinned berth.Spec, warnings []berth.Problem, err error,
) {
	digests := map[string]string{}

	for at, image := range want.Images() {
		found, notes, err := find(ctx, image)

		if broken, is := errors.AsType[*berth.SpecError](err); is {
			notes = broken.Problems
		}

		for i := range notes {
			notes[i].Pointer = at
		}

		if err != nil {
			return "", want, nil, err
		}

		digests[at], warnings = found, append(warnings, notes...)
	}

	return digests["/image"], want.WithDigests(digests), warnings, nil
}

// codeImageOld is the warning of a sweep whose image cannot be resolved now.
const codeImageOld = "W_IMAGE_OLD"

// codeUnavailable is when a part does not answer and nothing stands in for it.
const codeUnavailable = "E_UNAVAILABLE"

// resolve finds the digest of an image: by a machine, or, when none can be
// asked now, as one said before. The sweep then runs just that, and a machine
// that has another image under the name will say so.
func (s *Server) resolve(ctx context.Context, ref string) (digest string, warnings []berth.Problem, err error) {
	image, err := s.deps.Temporal.ResolveImage(ctx, ref)
	if err == nil {
		if err := s.deps.Store.RememberImage(ctx, ref, image.Digest); err != nil {
			s.log.Warn("remembering an image", "image", ref, "error", err)
		}

		return image.Digest, nil, nil
	}

	if berth.KindOf(err) != berth.KindUnavailable || ctx.Err() != nil {
		return "", nil, err
	}

	digest, at, recallErr := s.deps.Store.RecallImage(ctx, ref)

	switch {
	case recallErr == nil:
		return digest, []berth.Problem{{Code: codeImageOld, Pointer: "/image", Message: fmt.Sprintf(
			"no machine could be asked what %q is now (%s); the sweep runs what it was on %s, and starts when Temporal and a machine answer",
			ref, err, at.Format(time.RFC1123))}}, nil
	case berth.KindOf(recallErr) == berth.KindNotFound:
		return "", nil, &httpError{
			status: http.StatusServiceUnavailable, code: codeUnavailable, retryAfter: imagePause,
			detail: fmt.Sprintf("No machine could be asked what image %q is, and none ever was, so the sweep was not stored: %s. "+
				"Send it again in a moment; `berth doctor` on the server says what is down.", ref, err),
		}
	default:
		return "", nil, recallErr
	}
}

// imagePause is when to submit again where no machine answered: about as long
// as Temporal takes to start.
const imagePause = 10 * time.Second

// problems are the problems of a valid spec by the administrator's rules and
// the machines, these, and the ids of the sweeps that its search learns from.
func (s *Server) problems(ctx context.Context, want berth.Spec) (problems []berth.Problem, hosts []berth.Host, from []string, err error) {
	hosts, err = s.deps.Store.ListHosts(ctx)
	if err != nil {
		return nil, nil, nil, err
	}

	secrets, err := s.secrets(ctx, want)
	if err != nil {
		return nil, nil, nil, err
	}

	from, unknown, err := s.earlier(ctx, want)
	if err != nil {
		return nil, nil, nil, err
	}

	problems = slices.Concat(unknown, spec.CheckPolicy(want, s.config.Policy), spec.CheckSecrets(want, slices.Sorted(maps.Keys(secrets)), s.deps.Keys != nil))
	if len(hosts) > 0 { // before a machine was ever seen nothing is known to be too much
		has := capacity(hosts)
		has.SecretKeys = secrets
		problems = append(problems, spec.CheckCapacity(want, has)...)
	}

	return problems, hosts, from, nil
}

// earlier are the ids of the sweeps that a search learns from, and their problems.
func (s *Server) earlier(ctx context.Context, want berth.Spec) (ids []string, problems []berth.Problem, err error) {
	if len(want.Search.From) == 0 {
		return nil, nil, nil
	}

	searcher, err := search.New(want)
	if err != nil {
		return nil, nil, err
	}

	for i, name := range want.Search.From {
		id, err := s.sweepID(ctx, name)

		var lessons []berth.Assignment
		if err == nil {
			lessons, err = s.deps.Store.Lessons(ctx, id)
		}

		switch kind := berth.KindOf(err); {
		case err != nil && kind != berth.KindNotFound && kind != berth.KindConflict:
			return nil, nil, err
		case err != nil:
			problems = append(problems, spec.FromProblem(i, err.Error()))
		case len(lessons) == 0:
			problems = append(problems, spec.FromProblem(i, fmt.Sprintf("no trial of sweep %q has a value from which a search learns", name)))
		case !slices.ContainsFunc(lessons, searcher.Holds):
			problems = append(problems, spec.FromProblem(i, fmt.Sprintf(
				"the trials of sweep %q have other parameters, or other values of them, than this sweep: name the parameters alike, and let their ranges hold earlier values", name)))
		default:
			ids = append(ids, id)
		}
	}

	return ids, problems, nil
}

// secrets are the public parts of the keys that open the stored secrets, by their
// names; none for a sweep that mounts none.
func (s *Server) secrets(ctx context.Context, want berth.Spec) (map[string]string, error) {
	if len(want.Secrets) == 0 {
		return map[string]string{}, nil
	}

	list, err := s.deps.Store.ListSecrets(ctx)
	keys := make(map[string]string, len(list))

	for _, secret := range list {
		keys[secret.Name] = secret.Key
	}

	return keys, err
}

func capacity(hosts []berth.Host) spec.Capacity {
	var has spec.Capacity

	for i := range hosts {
		has.Hosts = append(has.Hosts, spec.HostCapacity{
			Name: hosts[i].Name, MemoryBytes: hosts[i].CapacityBytes(), CPUMilli: hosts[i].CPUMilli, Datasets: hosts[i].Datasets, SecretKeys: hosts[i].SecretKeys,
		})
	}

	return has
}

// readSweepFile reads and decodes the body. Errors: a *berth.SpecError.
func (s *Server) readSweepFile(r *http.Request) (berth.Spec, []byte, error) {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return berth.Spec{}, nil, &httpError{
			status: http.StatusUnsupportedMediaType, code: spec.CodeContentType,
			detail: "Send the sweep file as it is: " + encoding + " is not read.",
		}
	}

	body, err := io.ReadAll(r.Body)
	if err != nil {
		return berth.Spec{}, nil, err
	}

	if most := s.config.Limits.SpecBytes; int64(len(body)) > most {
		return berth.Spec{}, nil, &httpError{status: http.StatusRequestEntityTooLarge, code: spec.CodeBodyTooLarge, detail: tooLarge(most)}
	}

	decoded, err := spec.Decode(body, r.Header.Get("Content-Type"))

	return decoded, body, err
}

// createSweep is POST /sweeps.
func (s *Server) createSweep(c *gin.Context) error {
	decoded, body, err := s.readSweepFile(c.Request)
	if err != nil {
		return err
	}

	out, created, err := s.submit(c.Request.Context(), submission{
		spec: func() (berth.Spec, error) { return decoded, nil }, route: "POST " + base + "/sweeps", key: c.GetHeader("Idempotency-Key"), body: body,
	})
	if err != nil {
		return err
	}

	if !created {
		c.JSON(http.StatusOK, out)

		return nil
	}

	c.Header("Location", location(out.ID))
	c.JSON(http.StatusCreated, out)

	return nil
}

func location(sweepID string) string { return base + "/sweeps/" + sweepID }
