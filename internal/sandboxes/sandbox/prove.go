package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/attest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/attest/probe"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/commands"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
)

const (
	longestProof = 5 * time.Minute // when a twin ends that nobody ended
	longestStep  = 90 * time.Second

	// unlisted is a name that nobody can have.
	unlisted     = "controls.cofferdam-proof.invalid"
	unlistedPort = 443
)

// Prove makes a twin of a sandbox, has a probe try to get past each of its controls in
// there, and says what came of it. The twin has the policy, the template, the engine and
// the mounts of the sandbox, these read-only, and lower limits; it counts against the
// owner's quota while it lives, and its start and its end are on record. The sandbox
// itself is not touched.
func (m *Manager) Prove(ctx context.Context, id string) (attest.Report, error) {
	s, err := m.Get(id)
	if err != nil {
		return attest.Report{}, err
	}
	caps, err := m.capabilities(ctx, s.info.Engine)
	if err != nil {
		return attest.Report{}, err
	}
	p := &proof{m: m, token: strings.ToLower(rand.Text()), missing: caps.Missing}
	canaries, err := attest.Listen(ctx, p.token)
	if err != nil {
		return attest.Report{}, fault.Wrap(fault.ErrUnavailable, err, "no canary can be opened on this host")
	}
	defer canaries.Close()
	if p.twin, err = m.makeTwin(ctx, s); err != nil {
		return attest.Report{}, err
	}
	defer p.endTwin(ctx)
	evidence := p.tryAttempts(ctx, canaries)
	if err := ctx.Err(); err != nil {
		return attest.Report{}, err
	}
	return attest.Report{
		Sandbox: id, Run: s.info.Run, Twin: p.twin.info.ID, TwinRun: p.twin.info.Run, Template: s.info.Template, Engine: s.info.Engine,
		Policy: s.policy.Digest(), Limits: s.info.Limits, Tried: p.twin.info.Limits, Controls: attest.Judge(evidence),
	}, nil
}

func (m *Manager) capabilities(ctx context.Context, name string) (engine.Capabilities, error) {
	eng, ok := m.cfg.Engines[name]
	if !ok {
		return engine.Capabilities{}, fault.New(fault.ErrUnavailable, "there is no engine %q any more", name)
	}
	return eng.Capabilities(ctx)
}

// makeTwin makes one of the template, whatever the sandbox itself was made from.
func (m *Manager) makeTwin(ctx context.Context, s *Sandbox) (*Sandbox, error) {
	kept, err := m.remover.blueprints.Load(s.info.ID)
	if err != nil {
		return nil, err
	}
	if s.info.IsCopy() { // its mounts are of other places
		kept.Mounts = nil
	}
	var lock *lockfile.Given
	if s.info.LockDigest != "" {
		if lock, err = m.documents.givenLock(s.info.LockDigest); err != nil {
			return nil, err
		}
	}
	return m.Create(ctx, Request{
		Run: journal.NewID("proof-", 6), Task: "proves the controls of " + s.info.ID, Template: s.info.Template, Engine: s.info.Engine,
		Policy: s.policy, PolicySource: s.info.PolicySource, Lock: lock, Mounts: kept.Mounts, Workdir: s.info.Workdir,
		Lifetime: Lifetime{TTL: longestProof}, Owner: s.info.Owner, Account: s.info.Account, User: s.info.User,
		HostUID: kept.Spec.Owner.HostUID, HostGID: kept.Spec.Owner.HostGID,
		Narrowing: m.cfg.Door.Narrowing(s.info.ID), proof: true,
	})
}

// proof is one twin and what is tried in it.
type proof struct {
	m       *Manager
	twin    *Sandbox
	token   string
	missing map[engine.Control]string
}

// endTwin takes the twin away, if its memory's end has not.
func (p *proof) endTwin(ctx context.Context) {
	err := p.m.Destroy(context.WithoutCancel(ctx), p.twin.info.ID)
	if err != nil && !errors.Is(err, fault.ErrNotFound) {
		p.m.cfg.Log.Error("the twin of a proof can't be taken away", "sandbox", p.twin.info.ID, "err", err)
	}
}

// tryAttempts makes all attempts; those that may end the twin come last.
func (p *proof) tryAttempts(ctx context.Context, canaries *attest.Canaries) attest.Evidence {
	e := attest.Evidence{Missing: p.missing, Untried: map[probe.Attempt]string{}}
	limits := p.twin.info.Limits
	task := probe.Task{Token: p.token, Canaries: canaries.At(), ReadOnly: append(slices.Clone(p.twin.info.ReadOnlyMounts), mountpolicy.AgentPlace)}
	switch d := p.twin.policy.Host(unlisted, unlistedPort); d.Effect {
	case policy.Deny:
		task.Name = unlisted
	case policy.Hold:
		e.Untried[probe.Name] = "the policy has a person decide on names that it does not list, and a probe asks nobody"
	default:
		e.Untried[probe.Name] = "the policy lists every name: " + d.Reason
	}
	before, err := p.original(ctx)
	p.runStep(ctx, &e, probe.Look, task, "")
	task.Name = "" // it is the same question whoever asks
	p.runStep(ctx, &e, probe.Look, task, "root")
	if e.Changed = before.changed(p.token); err != nil {
		e.Changed = append(e.Changed, "nobody can tell, for it can't be looked at: "+err.Error())
	}
	if _, missing := p.missing[engine.ControlNProc]; !missing {
		p.runStep(ctx, &e, probe.Processes, probe.Task{Pids: limits.Pids}, "")
	}
	if _, missing := p.missing[engine.ControlDiskCap]; !missing {
		p.runStep(ctx, &e, probe.Disk, probe.Task{Token: p.token, DiskBytes: limits.DiskBytes}, "")
	}
	if _, missing := p.missing[engine.ControlCPU]; !missing {
		p.compute(ctx, &e, limits.CPU)
	}
	if _, missing := p.missing[engine.ControlMemory]; !missing {
		p.fillMemory(ctx, &e, limits.MemoryBytes)
	}
	canaries.Close()
	e.Visits = canaries.Visits()
	if version, err := os.ReadFile("/proc/version"); err == nil {
		e.HostKernel = string(version)
	}
	return e
}

// runStep runs the probe once and takes its words.
func (p *proof) runStep(ctx context.Context, e *attest.Evidence, step probe.Step, task probe.Task, user string) {
	words, err := p.runProbe(ctx, step, task, user)
	e.Words = append(e.Words, words...)
	if err != nil {
		e.Trouble = append(e.Trouble, fmt.Sprintf("%s as %s: %v", step, cmp.Or(user, "the user of commands"), err))
	}
}

// computeTries is how often the probe computes at most: beside others it may take a while
// until it comes to its limit.
const computeTries = 6

// compute computes on more processors than there may be. The host says what came of it.
func (p *proof) compute(ctx context.Context, e *attest.Evidence, limit float64) {
	if here := runtime.NumCPU(); float64(here) <= limit {
		e.Untried[probe.CPULimit] = fmt.Sprintf("this host has %d processors to give, and %.2f is the limit", here, limit)
		return
	}
	for range computeTries {
		began, before, err := p.usedByTwin(ctx)
		if err != nil {
			e.Trouble = append(e.Trouble, "what the twin has of the processors can't be read: "+err.Error())
			return
		}
		p.runStep(ctx, e, probe.Compute, probe.Task{Threads: 2 * runtime.NumCPU()}, "")
		ended, after, err := p.usedByTwin(ctx)
		if err != nil {
			e.Trouble = append(e.Trouble, "what the twin has of the processors can't be read: "+err.Error())
			return
		}
		e.Computed = &attest.Computed{
			Used: float64(after.CPUNanos-before.CPUNanos) / float64(ended.Sub(began)), Limit: limit, Throttled: after.CPUThrottled - before.CPUThrottled,
		}
		if e.Computed.Unmet() == "" {
			return
		}
	}
	e.Untried[probe.CPULimit] = e.Computed.Unmet()
}

// usedByTwin is what the twin has used, by the host's count, and when that was.
func (p *proof) usedByTwin(ctx context.Context) (time.Time, engine.Stats, error) {
	stats, err := p.twin.instance.Stats(ctx)
	return time.Now(), stats, err
}

// fillMemory uses more memory than there may be. Whether that ended it, the host says.
func (p *proof) fillMemory(ctx context.Context, e *attest.Evidence, limit int64) {
	p.runStep(ctx, e, probe.Memory, probe.Task{MemoryBytes: limit}, "")
	if stats, err := p.twin.instance.Stats(ctx); err == nil && stats.MemoryKills > 0 {
		e.OutOfMemory = true
		return
	}
	waiting, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	exit, err := p.twin.instance.Wait(waiting)
	e.OutOfMemory = err == nil && exit.OOM
}

// runProbe starts the agent's program as the probe, as an ordinary command that nobody judges:
// it is the daemon's own, and what it does is known.
func (p *proof) runProbe(ctx context.Context, step probe.Step, task probe.Task, user string) ([]probe.Word, error) {
	text, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, longestStep)
	defer cancel()
	out, err := p.twin.commands.Unjudged(ctx, commands.Command{
		Argv: []string{mountpolicy.AgentPlace + "/" + agentName, probe.Argument, string(step), string(text)}, User: user, Dir: "/", CapBytes: maxOutput,
	})
	var words []probe.Word
	for line := range bytes.Lines(out) {
		var w probe.Word
		if jerr := json.Unmarshal(line, &w); jerr != nil {
			return words, errors.Join(err, jerr)
		}
		words = append(words, w)
	}
	return words, err
}

// original is the twin's template as it was before anything was tried.
type original struct {
	places []string    // directories of this host that the marked ones are
	image  os.FileInfo // nil: it is none
	path   string
}

// original finds out where the template lies on this host.
func (p *proof) original(ctx context.Context) (original, error) {
	var o original
	tpl, err := p.m.cfg.Templates.Generation(ctx, p.twin.info.Template, p.twin.info.Digest)
	if err != nil {
		return o, err
	}
	if o.path = tpl.Root.Path; tpl.Root.Kind == engine.RootImage {
		if o.image, err = os.Stat(o.path); err != nil {
			return o, err
		}
	}
	for _, dir := range probe.MarkedDirs() {
		if o.image == nil {
			o.places = append(o.places, filepath.Join(o.path, dir))
		}
		for _, m := range tpl.Mounts {
			if m.Destination == dir && m.Source != "" {
				o.places = append(o.places, m.Source)
			}
		}
	}
	return o, nil
}

// changed looks for the probe's marks in it, and takes them away.
func (o original) changed(token string) []string {
	var found []string
	for _, dir := range o.places {
		mark := filepath.Join(dir, probe.MarkName(token))
		if _, err := os.Lstat(mark); err == nil {
			found = append(found, mark)
			_ = os.Remove(mark) // the report tells of it
		}
	}
	if o.image == nil {
		return found
	}
	now, err := os.Stat(o.path)
	if err != nil || !os.SameFile(now, o.image) || now.Size() != o.image.Size() || !now.ModTime().Equal(o.image.ModTime()) {
		found = append(found, o.path)
	}
	return found
}
