package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/approval"
	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
	"github.com/cofferdam-dev/cofferdam/internal/turns"
)

// Trees finds out what an install brings before it has asked for all of it: its resolver
// runs once more, in a plan's sandbox of its own. What comes of it admits nothing. It
// says what a person is shown, and what was not shown waits as before.
type Trees interface {
	// Installs are the install commands of an ecosystem that run in a sandbox now, as far
	// as their words tell. It does not block.
	Installs(sandbox string, of pkgref.Ecosystem) []Install
	// Rehearse resolves an install like the sandbox would, and calls weigh with what the
	// resolver chose while the plan's run lives.
	Rehearse(ctx context.Context, sandbox string, in Install, weigh func(ctx context.Context, run string, choices []PlanChoice, notes []string) error) error
}

// Install is an install command that runs in a sandbox.
type Install struct {
	Key     string // its own in the sandbox
	Command string // in words, for a person
}

// Bounds of rehearsals.
const (
	maxRehearsals = 32 // of one sandbox
	maxRehearsing = 4  // at one time
	maxOfOne      = 2  // at one time, for one token or sandbox of the host
	maxDeferred   = 500
	maxCommandSay = 200 // bytes of a command in a sentence
)

// unbuilt is the refusal of a source distribution in a rehearsal.
const unbuilt = "a source distribution that nobody has approved is not built to find out what it requires"

// rehearsal is what one install was found to bring. What stands behind done is written
// before that is closed, and not after.
type rehearsal struct {
	install Install
	done    chan struct{}

	tree     string // the request; "": there is none
	problem  string // why there is no tree
	releases map[pkgref.Ref]bool
}

func (r *rehearsal) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// installs are the rehearsals of the installs that run now, begun if they are not.
func (c *Controller) installs(t *tenant, of pkgref.Ecosystem) []*rehearsal {
	if c.config.Trees == nil || c.config.Approvals == nil || t.run.Plan {
		return nil
	}
	var all []*rehearsal
	for _, in := range c.config.Trees.Installs(t.run.Sandbox, of) {
		t.mu.Lock()
		r := t.rehearsals[in.Key]
		begin := r == nil && len(t.rehearsals) < maxRehearsals
		if begin {
			r = &rehearsal{install: in, done: make(chan struct{})}
			t.rehearsals[in.Key] = r
		}
		t.mu.Unlock()
		if begin {
			errand.Go(func() { c.rehearse(t, r) })
		}
		if r != nil {
			all = append(all, r)
		}
	}
	return all
}

// deferred takes a wish that a rehearsal may make part of a tree; if that has no tree,
// it is filed then. One that is not taken notes why there was none.
func (c *Controller) deferred(t *tenant, wish *approval.Ask) bool {
	for _, r := range c.installs(t, wish.Package.Ecosystem) {
		t.mu.Lock()
		defers := !r.over() && len(t.deferred) < maxDeferred
		if defers {
			t.deferred = append(t.deferred, *wish)
		}
		t.mu.Unlock()
		if defers || r.over() && r.releases[wish.Package.Release()] {
			return true
		}
		if r.over() && r.problem != "" {
			wish.Notes = append(wish.Notes, r.alone())
		}
	}
	return false
}

// alone says why what the install brings is asked for one by one. It has a problem.
func (r *rehearsal) alone() string {
	return "it is asked for by itself, since it is not known what else " + quoted(r.install.Command) + " brings: " + r.problem
}

// wholeTree returns once the tree that a release is part of is in the queue, or with the
// reasons why the release is asked for by itself.
func (c *Controller) wholeTree(ctx context.Context, t *tenant, p pkgref.Ref) (notes []string, err error) {
	if c.config.Trees == nil || t.run.Plan {
		return nil, nil
	}
	for _, r := range c.installs(t, p.Ecosystem) {
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		switch {
		case r.releases[p.Release()]:
			return nil, nil
		case r.problem != "":
			notes = append(notes, r.alone())
		case r.tree != "":
			notes = append(notes, "it is asked for by itself: it was not among what "+quoted(r.install.Command)+" was found to bring ("+r.tree+")")
		}
	}
	if len(notes) == 0 {
		notes = []string{"it is asked for by itself: no install command is known that it is part of"}
	}
	return notes, nil
}

func quoted(command string) string { return fmt.Sprintf("%q", records.Clip(command, maxCommandSay)) }

// rehearse finds out what an install brings, and files it.
func (c *Controller) rehearse(t *tenant, r *rehearsal) {
	err := c.resolve(t, r)
	if err != nil {
		r.problem = sentenceOf(err)
	}
	t.mu.Lock()
	deferred := t.deferred
	t.deferred = nil
	close(r.done)
	t.mu.Unlock()
	if err == nil || t.life.Err() != nil {
		return // what its resolver read and did not choose is asked for when it is wanted
	}
	for _, wish := range deferred {
		wish.Notes = []string{r.alone()}
		if _, err := c.file(t.life, wish); err != nil {
			return // its file asks again
		}
	}
}

func (c *Controller) resolve(t *tenant, r *rehearsal) error {
	ctx, cancel := context.WithTimeout(t.life, c.config.Limits.Tree)
	defer cancel()
	_, release, err := c.rehearsing.Take(turns.For(ctx, cmp.Or(t.run.Token, t.run.Sandbox)))
	if err == nil {
		defer release()
		err = c.config.Trees.Rehearse(ctx, t.run.Sandbox, r.install, func(ctx context.Context, run string, choices []PlanChoice, notes []string) error {
			weighed, err := c.Plan(ctx, run, choices)
			if err != nil {
				return err
			}
			return c.fileTree(ctx, t, r, weighed, notes)
		})
	}
	if err != nil && ctx.Err() != nil && t.life.Err() == nil {
		return fault.New(fault.ErrUnavailable, "to find it out took longer than %s", c.config.Limits.Tree)
	}
	return err
}

// sentenceOf is what a person is told of an error.
func sentenceOf(err error) string {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return records.Clip(f.Sentence, 500)
	}
	return records.Clip(err.Error(), 500)
}

// fileTree asks for all releases of a plan that wait, by the run that the install is of.
func (c *Controller) fileTree(ctx context.Context, t *tenant, r *rehearsal, p Plan, notes []string) error {
	tree := approval.TreeAsk{}
	releases := map[pkgref.Ref]bool{}
	have := 0
	for _, placed := range p.Tree() {
		w := placed.Weighed
		switch why := apartFrom(w); {
		case why != "":
			notes = append(notes, records.Clip(w.Package.Name+" "+w.Package.Version+" is not in it: "+why, 500))
		case w.Verdict.Effect == policy.Allow:
			have++
		default:
			wish, err := c.known(t.memberWish(w))
			if err != nil {
				return err
			}
			tree.Members = append(tree.Members, approval.TreeMember{Ask: wish, Depth: placed.Depth})
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
	request, err := c.config.Approvals.AskTree(ctx, tree)
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

// memberWish is a release of a plan for the queue, asked for by the run that waits.
func (t *tenant) memberWish(w *Weighed) approval.Ask {
	wish := t.planWish(w, "")
	wish.ByPerson = false
	t.compareInstalled(&wish.Evidence, w.Package, w.Paths)
	return wish
}

// shownAs is the request that a person is told of: the tree, where there is one.
func shownAs(r approval.Request) string {
	if r.State == approval.Pending && r.Tree != "" {
		return r.Tree
	}
	return r.ID
}
