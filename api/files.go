package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
)

// fileCursor is where a page of files ended.
type fileCursor struct {
	Path string `json:"p"`
}

// ListFiles is GET /trials/{id}/files.
func (h *handlers) ListFiles(ctx context.Context, r openapi.ListFilesRequestObject) (openapi.ListFilesResponseObject, error) {
	var after fileCursor
	if err := readCursor(given(r.Params.Cursor), &after); err != nil {
		return nil, err
	}

	limit := h.pageSize(given(r.Params.Limit))

	set, err := h.fileSet(ctx, r.ID, given(r.Params.Attempt))
	if err != nil {
		return nil, err
	}

	out := openapi.FileList{
		Data: []openapi.File{}, AttemptID: set.AttemptID, Attempt: set.Attempt, State: openapi.FileState(set.State), Problem: set.Problem,
		Files: set.Files, Bytes: set.Bytes, LeftOut: set.LeftOut, LeftOutFiles: []openapi.LeftOutFile{},
	}

	if after.Path == "" {
		out.LeftOutFiles = all(set.Reasons, func(l berth.LeftOut) openapi.LeftOutFile { return openapi.LeftOutFile{Path: l.Path, Reason: l.Reason} })
	}

	if set.Files == 0 {
		return openapi.ListFiles200JSONResponse(out), nil
	}

	files, err := h.deps.Store.ListFiles(ctx, set.AttemptID, after.Path, limit)
	if err != nil {
		return nil, err
	}

	out.Data = all(files, toFile)

	if len(files) == limit {
		out.NextCursor = writeCursor(fileCursor{Path: files[limit-1].Path})
	}

	return openapi.ListFiles200JSONResponse(out), nil
}

func toFile(f berth.Artifact) openapi.File {
	return openapi.File{Path: f.Path, Bytes: f.Bytes, Sha256: f.Digest.String(), StoredAt: f.StoredAt}
}

// fileSet returns the state of the files of a trial's attempt. A server without a
// store offers no files. Errors: not_found, also for a malformed id.
func (s *Server) fileSet(ctx context.Context, id string, attempt int) (berth.FileSet, error) {
	id = strings.ToLower(id)
	missing := berth.Errorf(berth.KindNotFound, "there is no trial %q; give its whole id, as `GET /sweeps/{id}/trials` has it", id)

	if !fullID.MatchString(id) {
		return berth.FileSet{}, missing
	}

	trial, err := s.deps.Store.FindTrial(ctx, id)
	if err != nil {
		if berth.KindOf(err) == berth.KindNotFound {
			return berth.FileSet{}, missing
		}

		return berth.FileSet{}, err
	}

	set, err := s.deps.Store.FileSet(ctx, id, attempt)

	switch {
	case err == nil:
	case berth.KindOf(err) == berth.KindNotFound && attempt > 0:
		return set, berth.Errorf(berth.KindNotFound, "trial %d has no attempt %d", trial.Number, attempt)
	case berth.KindOf(err) == berth.KindNotFound:
		return set, berth.Errorf(berth.KindNotFound, "trial %d has not started yet, so it has written no files", trial.Number)
	default:
		return set, err
	}

	if s.deps.Objects == nil && set.State == berth.FilesPending {
		set.State, set.Problem = berth.FilesOff, berth.NoArtifacts
	}

	if set.State == berth.FilesRemoved { // rows go in steps; some of the files would be taken for all
		set.Files, set.Bytes = 0, 0
	}

	return set, nil
}

// readFile is GET /trials/{id}/files/{path}. It returns an error as long as
// nothing was sent.
func (s *Server) readFile(c *gin.Context) error {
	ctx := c.Request.Context()
	attempt, _ := strconv.Atoi(c.Query("attempt")) // validation has read it already

	file, err := s.file(ctx, c.Param("id"), strings.TrimPrefix(c.Param("path"), "/"), attempt)
	if err != nil {
		return err
	}

	done, err := s.openStream(ctx)
	if err != nil {
		return err
	}
	defer done()

	body := &objectReader{ctx: ctx, objects: s.deps.Objects, file: file}
	defer body.close()

	if file.Bytes > 0 { // a silent store must be reported before the status is sent
		if err := body.open(); err != nil {
			return err
		}
	}

	header := c.Writer.Header()
	header.Set("Content-Type", "application/octet-stream") // so that the browser runs no user's page
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(file.Path)}))
	header.Set("ETag", `"`+file.Digest.String()+`"`)

	http.ServeContent(patientWriter{c.Writer}, c.Request, "", time.Time{}, body)

	if body.err != nil && ctx.Err() == nil {
		s.log.Error("sending a file", "path", file.Path, "sha256", file.Digest.String(), "error", body.err)
		panic(http.ErrAbortHandler) // the caller must not take a part for the whole
	}

	return nil
}

// file finds a stored file. Errors: not_found; conflict while no file can be sent.
func (s *Server) file(ctx context.Context, trialID, name string, attempt int) (berth.Artifact, error) {
	set, err := s.fileSet(ctx, trialID, attempt)
	if err != nil {
		return berth.Artifact{}, err
	}

	if s.deps.Objects == nil || set.State == berth.FilesOff {
		return berth.Artifact{}, berth.Errorf(berth.KindConflict, "%s", berth.NoArtifacts)
	}

	why := ""
	if set.State != berth.FilesStored {
		why = fmt.Sprintf("; its files are %s: %s", set.State, set.Problem)
	}

	missing := berth.Errorf(berth.KindNotFound, "attempt %d of the trial has no stored file %q%s", set.Attempt, strings.ToValidUTF8(name, "?"), strings.TrimSuffix(why, ": "))
	if set.State == berth.FilesRemoved || name == "" || strings.ToValidUTF8(name, "") != name || strings.ContainsRune(name, 0) {
		return berth.Artifact{}, missing
	}

	file, err := s.deps.Store.GetFile(ctx, set.AttemptID, name)
	if err != nil && berth.KindOf(err) == berth.KindNotFound {
		return file, missing
	}

	return file, err
}

// objectReader reads a file of the store, from where it was last told to.
type objectReader struct {
	ctx     context.Context //nolint:containedctx // io.ReadSeeker has none
	objects Objects
	file    berth.Artifact

	at     int64         // of the next byte
	part   io.ReadCloser // nil = nothing is open
	partAt int64         // of the next byte that part has
	err    error         // the first
}

var errSeek = errors.New("seeking before the beginning of a file")

// Seek is io.Seeker.
func (o *objectReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += o.at
	case io.SeekEnd:
		offset += o.file.Bytes
	}

	if offset < 0 {
		return 0, errSeek
	}

	o.at = offset

	return offset, nil
}

// open has part read on from at.
func (o *objectReader) open() (err error) {
	if o.part != nil && o.partAt == o.at {
		return nil
	}

	o.close()
	o.part, err = o.objects.Read(o.ctx, o.file.Digest, o.at, -1)
	o.partAt = o.at

	return err
}

// Read is io.Reader.
func (o *objectReader) Read(p []byte) (int, error) {
	if o.at >= o.file.Bytes {
		return 0, io.EOF
	}

	if err := o.open(); err != nil {
		o.err = err

		return 0, err
	}

	n, err := o.part.Read(p)
	o.at, o.partAt = o.at+int64(n), o.partAt+int64(n)

	if errors.Is(err, io.EOF) && o.at < o.file.Bytes {
		err = io.ErrUnexpectedEOF
	}

	if err != nil && !errors.Is(err, io.EOF) {
		o.err = err
	}

	return n, err
}

func (o *objectReader) close() {
	if o.part != nil {
		_ = o.part.Close() // only read
		o.part = nil
	}
}
