package planning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// Trees finds out what an install brings before it has asked for all of it: its resolver
// runs once more, in a plan's sandbox of its own. Its outcome admits nothing. It
// says what a person is shown, and what was not shown waits as before.
type Trees interface {
	// Installs are the install commands of an ecosystem that run in a sandbox now, as far
	// as their words tell. It does not block.
	Installs(sandbox string, of pkgref.Ecosystem) []Install
	// Rehearse resolves an install like the sandbox would, and calls weigh with what the
	// resolver chose while the plan's run lives.
	Rehearse(ctx context.Context, sandbox string, in Install, weigh func(ctx context.Context, run string, choices []Choice, notes []string) error) error
}

// Install is an install command that runs in a sandbox.
type Install struct {
	Key     string // its own in the sandbox
	Command string // in words, for a person
}

// Bounds of rehearsals.
const (
	MaxRehearsals = 32 // of one sandbox
	maxRehearsing = 4  // at one time
	maxOfOne      = 2  // at one time, for one token or sandbox of the host
	maxDeferred   = 500
	maxCommandSay = 200 // bytes of a command in a sentence
)

// Unbuilt is the refusal of a source distribution in a rehearsal.
const Unbuilt = "a source distribution that nobody has approved is not built to find out what it requires"

// rehearsal is what one install was found to bring. The fields behind done are written before that is closed, and not after.
type rehearsal struct {
	install Install
	done    chan struct{}

	tree     string // the request; "": there is none
	problem  string // why there is no tree
	releases map[pkgref.Ref]bool
}

func (r *rehearsal) isOver() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// Desk is what rehearsals need of the daemon.
type Desk struct {
	Trees   Trees
	Timeout time.Duration // for one rehearsal
	// Plan weighs what a resolver chose in a plan's run.
	Plan func(ctx context.Context, run string, choices []Choice) (Plan, error)
	// Describe adds to a ask what the imported lists say of its release.
	Describe func(approval.Ask) (approval.Ask, error)
	// Ask files a ask by itself, and AskTree a whole tree.
	Ask     func(ctx context.Context, ask approval.Ask) (approval.Request, error)
	AskTree func(ctx context.Context, tree approval.TreeAsk) (approval.Request, error)

	turns *fairqueue.Shares // for the rehearsals at one time
}

// Open makes a desk ready, before anybody rehearses.
func (d *Desk) Open() { d.turns = fairqueue.New(fairqueue.Limits{All: maxRehearsing, Each: maxOfOne}) }

// Rehearsals are those of one sandbox's installs. A nil one finds nothing out. Safe for
// concurrent use.
type Rehearsals struct {
	desk    *Desk
	sandbox string
	payer   string                        // the token or sandbox whose turn a rehearsal takes
	ask     func(w *Weighed) approval.Ask // a release for the queue, asked for by the run that waits
	life    context.Context               //nolint:containedctx // as long as the sandbox is registered: a rehearsal outlives the request that began it

	mu       sync.Mutex // guards all below
	byKey    map[string]*rehearsal
	deferred []approval.Ask // asks that a rehearsal may make part of a tree
}

// For makes the rehearsals of a sandbox, which end with ctx.
func (d *Desk) For(ctx context.Context, sandbox, token string, ask func(w *Weighed) approval.Ask) *Rehearsals {
	return &Rehearsals{desk: d, sandbox: sandbox, payer: cmp.Or(token, sandbox), ask: ask, life: ctx, byKey: map[string]*rehearsal{}}
}

// rehearsalsOf are the rehearsals of the installs that run now, begun if they are not.
func (s *Rehearsals) rehearsalsOf(e pkgref.Ecosystem) []*rehearsal {
	var all []*rehearsal
	for _, in := range s.desk.Trees.Installs(s.sandbox, e) {
		s.mu.Lock()
		r := s.byKey[in.Key]
		begin := r == nil && len(s.byKey) < MaxRehearsals
		if begin {
			r = &rehearsal{install: in, done: make(chan struct{})}
			s.byKey[in.Key] = r
		}
		s.mu.Unlock()
		if begin {
			safego.Go(func() { s.rehearse(r) })
		}
		if r != nil {
			all = append(all, r)
		}
	}
	return all
}

// Defer takes a ask that a rehearsal may make part of a tree; if that has no tree,
// it is filed then. One that is not taken notes why there was none.
func (s *Rehearsals) Defer(ask *approval.Ask) bool {
	if s == nil {
		return false
	}
	for _, r := range s.rehearsalsOf(ask.Package.Ecosystem) {
		s.mu.Lock()
		defers := !r.isOver() && len(s.deferred) < maxDeferred
		if defers {
			s.deferred = append(s.deferred, *ask)
		}
		s.mu.Unlock()
		if defers || r.isOver() && r.releases[ask.Package.Release()] {
			return true
		}
		if r.isOver() && r.problem != "" {
			ask.Notes = append(ask.Notes, r.whyAlone())
		}
	}
	return false
}

// whyAlone says why what the install brings is asked for one by one. It has a problem.
func (r *rehearsal) whyAlone() string {
	return "it is asked for by itself, since it is not known what else " + quoted(r.install.Command) + " brings: " + r.problem
}

// Whole returns once the tree that a release is part of is in the queue, or with the
// reasons why the release is asked for by itself.
func (s *Rehearsals) Whole(ctx context.Context, p pkgref.Ref) (notes []string, err error) {
	if s == nil {
		return nil, nil
	}
	for _, r := range s.rehearsalsOf(p.Ecosystem) {
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		switch {
		case r.releases[p.Release()]:
			return nil, nil
		case r.problem != "":
			notes = append(notes, r.whyAlone())
		case r.tree != "":
			notes = append(notes, "it is asked for by itself: it was not among what "+quoted(r.install.Command)+" was found to bring ("+r.tree+")")
		}
	}
	if len(notes) == 0 {
		notes = []string{"it is asked for by itself: no install command is known that it is part of"}
	}
	return notes, nil
}

func quoted(command string) string { return fmt.Sprintf("%q", redact.Cut(command, maxCommandSay)) }

// rehearse finds out what an install brings, and files it.
func (s *Rehearsals) rehearse(r *rehearsal) {
	err := s.resolveRehearsal(r)
	if err != nil {
		r.problem = sentenceOf(err)
	}
	s.mu.Lock()
	deferred := s.deferred
	s.deferred = nil
	close(r.done)
	s.mu.Unlock()
	if err == nil || s.life.Err() != nil {
		return // what its resolver read and did not choose is asked for when it is wanted
	}
	for _, ask := range deferred {
		ask.Notes = []string{r.whyAlone()}
		if _, err := s.desk.Ask(s.life, ask); err != nil {
			return // its file asks again
		}
	}
}

func (s *Rehearsals) resolveRehearsal(r *rehearsal) error {
	ctx, cancel := context.WithTimeout(s.life, s.desk.Timeout)
	defer cancel()
	_, release, err := s.desk.turns.Take(fairqueue.Within(ctx, s.payer, s.sandbox))
	if err == nil {
		defer release()
		err = s.desk.Trees.Rehearse(ctx, s.sandbox, r.install, func(ctx context.Context, run string, choices []Choice, notes []string) error {
			weighed, err := s.desk.Plan(ctx, run, choices)
			if err != nil {
				return err
			}
			return s.fileTree(ctx, r, weighed, notes)
		})
	}
	if err != nil && ctx.Err() != nil && s.life.Err() == nil {
		return fault.New(fault.ErrUnavailable, "to find it out took longer than %s", s.desk.Timeout)
	}
	return err
}

// sentenceOf is what a person is told of an error.
func sentenceOf(err error) string {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return redact.Cut(f.Sentence, 500)
	}
	return redact.Cut(err.Error(), 500)
}

// fileTree asks for all releases of a plan that wait, by the run that the install is of.
func (s *Rehearsals) fileTree(ctx context.Context, r *rehearsal, p Plan, notes []string) error {
	tree := approval.TreeAsk{}
	releases := map[pkgref.Ref]bool{}
	have := 0
	for _, placed := range p.Tree() {
		w := placed.Weighed
		switch why := apartFrom(w); {
		case why != "":
			notes = append(notes, redact.Cut(w.Package.Name+" "+w.Package.Version+" is not in it: "+why, 500))
		case w.Verdict.Effect == policy.Allow:
			have++
		default:
			ask, err := s.desk.Describe(s.ask(w))
			if err != nil {
				return err
			}
			tree.Members = append(tree.Members, approval.TreeMember{Ask: ask, Depth: placed.Depth})
			releases[w.Package.Release()] = true
		}
	}
	if len(tree.Members) == 0 {
		return fault.New(fault.ErrNotFound, "nothing that its resolver chose waits")
	}
	if have > 0 {
		notes = append(notes, fmt.Sprintf("%d more releases that it brings are admitted already", have))
	}
	tree.Notes = notes
	tree.Root = rootOf(tree.Members, r.install.Command)
	tree.Reason = fmt.Sprintf("%s brings %d releases that wait for approval", quoted(r.install.Command), len(tree.Members))
	request, err := s.desk.AskTree(ctx, tree)
	if err != nil {
		return err
	}
	r.tree, r.releases = request.ID, releases
	return nil
}

// apartFrom says why a release can't be a member of a tree.
func apartFrom(w *Weighed) string {
	switch {
	case w.Problem != "":
		return w.Problem
	case w.Verdict.Effect == policy.Allow:
		return ""
	case w.Verdict.Effect != policy.Hold:
		return "it is refused: " + w.Verdict.Reason
	case !slices.ContainsFunc(approval.Digests(w.Files), policy.StrongDigest):
		return "its digest is not known before it is fetched, so it is asked for then"
	}
	return ""
}

// rootOf is the release that stands for a tree: the first that the command names.
func rootOf(members []approval.TreeMember, command string) pkgref.Ref {
	for _, m := range members {
		if strings.Contains(strings.ToLower(command), strings.ToLower(m.Package.Name)) && m.Depth == 0 {
			return m.Package
		}
	}
	return members[0].Package
}
