package admission

import (
	"context"
	"fmt"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
)

// Keys of Record.Detail, of records about builds of templates.
const (
	detailBuild    = "build"
	detailTemplate = "template"
	detailBase     = "base"
	detailStep     = "step"
)

// BuildStage is how far a build of a template is.
type BuildStage string

// The stages. A build that ends without a sandbox has begun none.
const (
	BuildBegun  BuildStage = "begun"
	BuildStep   BuildStage = "step"
	BuildReady  BuildStage = "ready"
	BuildFailed BuildStage = "failed"
)

// Build is a stage of a template's build, for the record.
type Build struct {
	ID       string
	Template string // its name
	Base     string // what it is made from
	Stage    BuildStage
	Step     string // its number, or "base" and "finalize"; what is done stands in Text
	Text     string // of a step: what is done; of a failure: why
	Snapshot string // of the result
	Token    string
}

// RecordBuild records a stage before it is so: in the run of the build's sandbox, or in
// the daemon's where it has none.
func (l *Lives) RecordBuild(ctx context.Context, sandbox string, b Build) error {
	r := audit.Record{Kind: audit.KindBuild, Outcome: b.outcome(), Token: b.Token, Detail: map[string]string{}, Reason: redact.Cut(b.describeBuild(), 1_024)}
	for key, text := range map[string]string{
		detailBuild: b.ID, detailTemplate: b.Template, detailBase: b.Base, detailStep: b.Step, detailSnapshot: b.Snapshot, records.DetailEvent: string(b.Stage),
	} {
		if text != "" {
			r.Detail[key] = redact.Cut(text, 512)
		}
	}
	if sandbox == "" {
		_, err := l.log.Append(ctx, r)
		if err != nil && b.Stage == BuildFailed {
			l.overdue.keepRecord(r)
		}
		return err
	}
	t, err := l.tenants.getTenant(sandbox)
	if err != nil {
		return err
	}
	r.User = t.run.User
	_, err = t.book.Append(ctx, r)
	return err
}

func (b Build) outcome() audit.Outcome {
	switch b.Stage {
	case BuildReady:
		return audit.Finished
	case BuildFailed:
		return audit.Failed
	case BuildBegun, BuildStep:
	}
	return audit.Started
}

func (b Build) describeBuild() string {
	name := strconv.Quote(redact.Cut(b.Template, 128))
	switch b.Stage {
	case BuildBegun:
		return fmt.Sprintf("the template %s is built from %s", name, redact.Cut(b.Base, 128))
	case BuildStep:
		return fmt.Sprintf("step %s of the template %s: %s", b.Step, name, redact.Cut(b.Text, 700))
	case BuildReady:
		return fmt.Sprintf("the template %s is built; it is the snapshot %s", name, b.Snapshot)
	case BuildFailed:
		if b.Step != "" {
			return fmt.Sprintf("the build of the template %s failed in step %s: %s", name, b.Step, redact.Cut(b.Text, 700))
		}
	}
	return fmt.Sprintf("the build of the template %s failed: %s", name, redact.Cut(b.Text, 700))
}
