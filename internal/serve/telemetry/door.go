package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// watchedDoor is a door whose answers are counted and traced. A method that it does not name here decides nothing.
type watchedDoor struct {
	door.Door
	t *Telemetry
}

// Door counts and traces what the gateway asks. A call's span is a child of the
// sandbox's newest command.
func (t *Telemetry) Door(d door.Door) door.Door { return watchedDoor{d, t} }

// asked is one call under way.
type asked struct {
	t     *Telemetry
	call  string
	began time.Time
	span  trace.Span
}

// beginAsk begins a call. texts are about what is asked.
func (d watchedDoor) beginAsk(ctx context.Context, call, sandbox string, about pkgref.Ref) (context.Context, asked) {
	ctx, span := d.t.tracer.Start(d.t.newest.underNewest(ctx, sandbox), "decide "+call)
	setTexts(span, map[attribute.Key]string{
		keySandbox: sandbox, keyEcosystem: string(about.Ecosystem), keyPackage: about.Name, keyVersion: about.Version,
	})
	return ctx, asked{d.t, call, time.Now(), span}
}

// endAsk ends it; result is one of a few words.
func (a asked) endAsk(result string, err error) {
	if err != nil {
		result = categoryOf(err)
	}
	a.t.metrics.calls.WithLabelValues(a.call, result).Inc()
	a.t.metrics.calling.WithLabelValues(a.call).Observe(secondsSince(a.began))
	endSpan(a.span, err)
}

// decided ends it with a decision.
func (a asked) decided(answer door.Answer, err error) {
	if err == nil {
		setTexts(a.span, map[attribute.Key]string{
			keyEffect: string(answer.Decision.Effect), keyRule: answer.Decision.Rule,
			keyRequest: answer.RequestID, keyApproval: answer.Approval,
		})
		if answer.RequestID != "" {
			a.span.SetAttributes(keyRecord.Int64(int64(answer.Seq)))
		}
	}
	a.endAsk(string(answer.Decision.Effect), err)
}

// decided has a question answered with a decision, and watches it.
func decided[Q any](ctx context.Context, d watchedDoor, call, sandbox string, about pkgref.Ref, ask Q, do func(context.Context, Q) (door.Answer, error)) (door.Answer, error) {
	ctx, a := d.beginAsk(ctx, call, sandbox, about)
	answer, err := do(ctx, ask)
	a.decided(answer, err)
	return answer, err
}

// ofFile is decided of a question about a file.
func ofFile[Q any](ctx context.Context, d watchedDoor, call string, about door.FileAsk, ask Q, do func(context.Context, Q) (door.Answer, error)) (door.Answer, error) {
	return decided(ctx, d, call, about.Sandbox, about.Package, ask, do)
}

// Index implements door.Door.
func (d watchedDoor) Index(ctx context.Context, ask door.IndexAsk) (door.IndexAnswer, error) {
	ctx, a := d.beginAsk(ctx, "index", ask.Sandbox, ask.Package)
	answer, err := d.Door.Index(ctx, ask)
	result := "allow"
	switch {
	case answer.NeedFiles:
		result = "need_files"
	case answer.RequestID != "":
		result = "withheld"
	}
	setTexts(a.span, map[attribute.Key]string{keyEffect: result, keyRequest: answer.RequestID})
	a.endAsk(result, err)
	return answer, err
}

// Judge implements door.Door.
func (d watchedDoor) Judge(ctx context.Context, ask door.JudgeAsk) (door.Answer, error) {
	return ofFile(ctx, d, "artifact", ask.FileAsk, ask, d.Door.Judge)
}

// Outline implements door.Door.
func (d watchedDoor) Outline(ctx context.Context, ask door.OutlineAsk) (door.Answer, error) {
	return ofFile(ctx, d, "artifact", ask.FileAsk, ask, d.Door.Outline)
}

// Preview implements door.Door.
func (d watchedDoor) Preview(ctx context.Context, ask door.PreviewAsk) (door.Answer, error) {
	return ofFile(ctx, d, "artifact", ask.FileAsk, ask, d.Door.Preview)
}

// Walk implements door.Door.
func (d watchedDoor) Walk(ctx context.Context, ask door.WalkAsk) (door.Answer, error) {
	return ofFile(ctx, d, "walk", ask.FileAsk, ask, d.Door.Walk)
}

// Await implements door.Door.
func (d watchedDoor) Await(ctx context.Context, ask door.AwaitAsk) (door.Answer, error) {
	return ofFile(ctx, d, "await", ask.FileAsk, ask, d.Door.Await)
}

// Serve implements door.Door.
func (d watchedDoor) Serve(ctx context.Context, ask door.ServeAsk) (door.Answer, error) {
	answer, err := ofFile(ctx, d, "serve", ask.FileAsk, ask, d.Door.Serve)
	if err == nil && answer.Decision.Effect == policy.Allow {
		d.t.served(ask)
	}
	return answer, err
}

func (t *Telemetry) served(ask door.ServeAsk) {
	ecosystem, kept := ecosystemOf(string(ask.Package.Ecosystem)), "miss"
	if ask.Kept {
		kept = "hit"
	}
	t.metrics.servedFiles.WithLabelValues(ecosystem, kept).Inc()
	t.metrics.servedBytes.WithLabelValues(ecosystem).Add(float64(max(0, ask.Size)))
}

// Name implements door.Door. The name is not told: a guest can put anything
// into it.
func (d watchedDoor) Name(ctx context.Context, ask door.NameAsk) (door.NameAnswer, error) {
	ctx, a := d.beginAsk(ctx, "name", ask.Sandbox, pkgref.Ref{})
	answer, err := d.Door.Name(ctx, ask)
	a.decided(answer.Answer, err)
	return answer, err
}

// Resolving implements door.Door. The host is not told.
func (d watchedDoor) Resolving(ctx context.Context, ask door.ResolveAsk) (door.Answer, error) {
	return decided(ctx, d, "resolving", ask.Sandbox, pkgref.Ref{}, ask, d.Door.Resolving)
}

// Connect implements door.Door. The host is not told either.
func (d watchedDoor) Connect(ctx context.Context, ask door.ConnectAsk) (door.Answer, error) {
	return decided(ctx, d, "connect", ask.Sandbox, pkgref.Ref{}, ask, d.Door.Connect)
}

// AwaitHost implements door.Door. Nor is it here.
func (d watchedDoor) AwaitHost(ctx context.Context, ask door.HostAsk) (door.Answer, error) {
	return decided(ctx, d, "await_host", ask.Sandbox, pkgref.Ref{}, ask, d.Door.AwaitHost)
}

// AwaitPush implements door.Door. Nor is the repository.
func (d watchedDoor) AwaitPush(ctx context.Context, ask door.PushAsk) (door.Answer, error) {
	return decided(ctx, d, "await_push", ask.Sandbox, pkgref.Ref{}, ask, d.Door.AwaitPush)
}

// Disconnected implements door.Door.
func (d watchedDoor) Disconnected(ctx context.Context, how door.Disconnection) error {
	ctx, a := d.beginAsk(ctx, "disconnected", how.Sandbox, pkgref.Ref{})
	err := d.Door.Disconnected(ctx, how)
	a.endAsk("ok", err)
	return err
}

// Request implements door.Door.
func (d watchedDoor) Request(ctx context.Context, ask door.RequestAsk) (door.RequestAnswer, error) {
	ctx, a := d.beginAsk(ctx, "request", ask.Sandbox, pkgref.Ref{})
	answer, err := d.Door.Request(ctx, ask)
	a.decided(answer.Answer, err)
	return answer, err
}

// HostRefused implements door.Door.
func (d watchedDoor) HostRefused(ctx context.Context, h door.HostRefusal) (door.Answer, error) {
	return decided(ctx, d, "host_refused", h.Sandbox, pkgref.Ref{}, h, d.Door.HostRefused)
}

// CallTool implements door.Door. The tool is not told: a guest can put anything there.
func (d watchedDoor) CallTool(ctx context.Context, ask door.ToolAsk) (door.ToolAnswer, error) {
	ctx, a := d.beginAsk(ctx, "call_tool", ask.Sandbox, pkgref.Ref{})
	answer, err := d.Door.CallTool(ctx, ask)
	a.endAsk(string(answer.Outcome), err)
	return answer, err
}

// Failed implements door.Door.
func (d watchedDoor) Failed(ctx context.Context, f door.Failure) (door.Answer, error) {
	return decided(ctx, d, "failed", f.Sandbox, f.Package, f, d.Door.Failed)
}

// Propose implements door.Door.
func (d watchedDoor) Propose(ctx context.Context, ask door.ProposalAsk) ([]door.Proposed, error) {
	ctx, a := d.beginAsk(ctx, "propose", ask.Sandbox, pkgref.Ref{})
	list, err := d.Door.Propose(ctx, ask)
	a.endAsk("ok", err)
	return list, err
}

// Asking implements door.Door.
func (d watchedDoor) Asking(ctx context.Context, q door.Question) error {
	ctx, a := d.beginAsk(ctx, "asking", q.Sandbox, q.Package)
	err := d.Door.Asking(ctx, q)
	a.endAsk("ok", err)
	return err
}

// Show implements door.Door.
func (d watchedDoor) Show(ctx context.Context, s door.Showing) error {
	ctx, a := d.beginAsk(ctx, "show", s.Sandbox, s.Package)
	err := d.Door.Show(ctx, s)
	a.endAsk("ok", err)
	return err
}

// Sent implements door.Door.
func (d watchedDoor) Sent(ctx context.Context, sandbox string, seq uint64) error {
	ctx, a := d.beginAsk(ctx, "sent", sandbox, pkgref.Ref{})
	err := d.Door.Sent(ctx, sandbox, seq)
	a.endAsk("ok", err)
	return err
}

// Aborted implements door.Door.
func (d watchedDoor) Aborted(ctx context.Context, sandbox string, seq uint64, sent int64) error {
	ctx, a := d.beginAsk(ctx, "aborted", sandbox, pkgref.Ref{})
	err := d.Door.Aborted(ctx, sandbox, seq, sent)
	a.endAsk("ok", err)
	return err
}
