package cli

import (
	"io"
	"os"

	"github.com/mattn/go-isatty"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/berthml/berth/api/client"
)

// meter shows the progress of a download on a terminal.
type meter struct {
	progress *mpb.Progress // nil = nothing is shown
	bar      *mpb.Bar
}

// isTerminal reports whether w draws for a person.
func (o *options) isTerminal(w io.Writer) bool {
	file, isFile := w.(*os.File)

	return isFile && isatty.IsTerminal(file.Fd()) && o.getenv("TERM") != "dumb" && o.getenv("CI") == ""
}

func (o *options) meterFor(w io.Writer, files []client.File) *meter {
	if !o.isTerminal(w) {
		return &meter{}
	}

	total := int64(0)
	for _, f := range files {
		total += f.Bytes
	}

	progress := mpb.New(mpb.WithOutput(w))

	return &meter{progress: progress, bar: progress.New(total, mpb.BarStyle(), mpb.BarWidth(barWidth),
		mpb.PrependDecorators(decor.Name("\r")),
		mpb.AppendDecorators(decor.CountersKibiByte("% .1f of % .1f"), decor.Name("  "), decor.AverageSpeed(decor.SizeB1024(0), "% .1f")))}
}

func (m *meter) add(bytes int64) {
	if m.bar != nil {
		m.bar.IncrInt64(bytes)
	}
}

// close leaves the bar as it is; again it does nothing.
func (m *meter) close() {
	if m.progress == nil {
		return
	}

	m.bar.Abort(false)
	m.progress.Wait()
	m.progress, m.bar = nil, nil
}
