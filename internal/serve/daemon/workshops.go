package daemon

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/building"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"
)

// workshops build source distributions and run install scripts, in sandboxes of their own: the door asks, the
// manager has the sandboxes, an installer has the command.
type workshops struct{ daemon *Daemon }

var _ building.Maker = workshops{}

// Where a build has its folder, and what of its output is told.
const (
	builtFolder  = "/var/tmp/built"
	maxBuildTail = 4_000 // bytes
)

// buildScript runs a build and prints the end of what it wrote. Its exit is the build's.
const buildScript = `mkdir -p "$1" || exit 125
tail=$2
folder=$1
shift 2
"$@" >"$folder.log" 2>&1
code=$?
tail -c "$tail" "$folder.log"
exit $code`

// Make implements building.Maker.
func (w workshops) Make(ctx context.Context, job building.Job, to io.Writer) (made building.Origin, err error) {
	builder, ok := all.SourceBuilder(job.Package.Ecosystem)
	if !ok {
		return made, fault.New(fault.ErrUnavailable, "no client here builds packages of %s", job.Package.Ecosystem)
	}
	shop, err := w.daemon.sandboxes.Workshop(ctx, job.Sandbox, job.Source, job.Policy)
	if err != nil {
		return made, err
	}
	defer func() {
		if err := shop.End(ctx); err != nil {
			w.daemon.opts.Log.ErrorContext(ctx, "the sandbox in which something was built can't be taken away yet", "for", job.Sandbox, "err", err)
		}
	}()
	info := shop.Info()
	made = building.Origin{Run: info.Run, Template: strings.TrimSpace(info.Template + " " + info.Digest), Engine: info.Engine}
	out, err := shop.Output(ctx, commandOfBuild(builder, job), 2*maxBuildTail)
	if err != nil {
		sentence := "its build failed"
		if job.Makes == policy.KindRan {
			sentence = "its install scripts failed"
		}
		return made, &building.Failure{Sentence: sentence, Output: string(out), Line: builder.Complaint(string(out)), Run: info.Run}
	}
	made.File, err = shop.Take(ctx, builtFolder, builder.BuiltSuffix(), to)
	if failed, ok := errors.AsType[*building.Failure](err); ok {
		failed.Output, failed.Run = string(out), info.Run
	}
	return made, err
}

// commandOfBuild returns the command of a build.
func commandOfBuild(b installer.SourceBuilder, job building.Job) []string {
	command := b.BuildSource(job.URL, job.SHA256, builtFolder)
	return append([]string{"sh", "-c", buildScript, "build", builtFolder, strconv.Itoa(maxBuildTail)}, command...)
}
