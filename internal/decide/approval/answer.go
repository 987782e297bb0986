package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Verdict is one answer for several requests.
type Verdict struct {
	IDs    []string // of requests, or ID@REVISION; a group's id stands for its pending requests
	State  State    // Approved or Denied
	Scope  Scope    // "" is ScopeFor each request
	Reason string
	Lasts  time.Duration // 0: for ever
	// Digests are, by request, those that the person was shown. Without an entry
	// the answer is bound to what is known now.
	Digests map[string][]string
	// Revisions are, by request, those that the person was shown, as in ID@REVISION. An
	// approval needs one of each request, or of the tree that a request is a member of; a
	// denial without one is of whatever the request is by now.
	Revisions map[string]uint64
}

// maxLasts bounds how long an answer can be made to last: past it, say for ever.
const maxLasts = 10 * 365 * 24 * time.Hour

// Answer answers all requests of a verdict or, on an error, none. Who is the
// host's user. An unknown id is fault.ErrNotFound; a request that is not
// pending, or that is at another revision than the person was shown, is
// fault.ErrConflict, and the sentence says why. These refusals are on record.
func (q *Queue) Answer(ctx context.Context, who string, v Verdict) ([]Request, error) {
	if err := v.checkVerdict(); err != nil {
		return nil, err
	}
	v, err := v.parsed()
	if err != nil {
		return nil, err
	}
	q.write.Lock()
	defer q.write.Unlock()
	if err := q.ready(ctx); err != nil {
		return nil, err
	}
	subjects, err := q.addressed(ctx, who, v.IDs)
	if err != nil {
		return nil, err
	}
	if err := v.checkSubjects(subjects); err != nil {
		return nil, err
	}
	if err := q.onRevisions(ctx, who, v, subjects); err != nil {
		return nil, err
	}
	changes, err := q.changes(ctx, who, v, subjects)
	if err != nil {
		return nil, err
	}
	if err := q.commit(ctx, changes...); err != nil {
		return nil, err
	}
	answered := make([]Request, 0, len(subjects))
	for _, s := range subjects {
		r, err := q.reader.wholeRequest(ctx, s.ID)
		if err != nil {
			return nil, err
		}
		answered = append(answered, r)
	}
	return answered, nil
}

// changes are what a verdict makes of its subjects.
func (q *Queue) changes(ctx context.Context, who string, v Verdict, subjects []subject) ([]change, error) {
	now := q.now()
	var changes []change
	for _, s := range subjects {
		if s.IsTree() {
			continue // it ends with its last member
		}
		if err := v.showed(s, subjects); err != nil {
			return nil, q.refuseAnswer(ctx, who, s.ID, &s.Entry, err)
		}
		c, err := q.change(v, s, who, now)
		if err != nil {
			return nil, q.refuseAnswer(ctx, who, s.ID, &s.Entry, err)
		}
		changes = append(changes, c)
	}
	if len(changes) == 0 {
		return nil, fault.New(fault.ErrConflict, "none of the releases of %s waits for an answer", subjects[0].ID)
	}
	return changes, nil
}

// subject is a request that an answer is about. Of a member of a tree that is answered
// as a whole shown are the digests that the tree was asked for with.
type subject struct {
	Entry
	tree  string
	shown []string
}

// parsed is a verdict whose ids are bare, with the revisions that they named.
func (v Verdict) parsed() (Verdict, error) {
	v.Revisions = maps.Clone(v.Revisions)
	if v.Revisions == nil {
		v.Revisions = map[string]uint64{}
	}
	v.IDs = slices.Clone(v.IDs)
	for i, text := range v.IDs {
		id, revision, err := ParseAnswerID(text)
		switch known := v.Revisions[id]; {
		case err != nil:
			return Verdict{}, err
		case revision > 0 && known > 0 && known != revision:
			return Verdict{}, fault.Invalid("two revisions of %s are named, %d and %d; an answer is given on one", boundText(id, maxShort), known, revision)
		case revision > 0 && IsGroup(id):
			return Verdict{}, fault.Invalid("a group has no revision: name each of its requests as ID@REVISION (cofferdam approvals list --group %s)", boundText(id, maxShort))
		case revision > 0:
			v.Revisions[id] = revision
		}
		v.IDs[i] = id
	}
	return v, nil
}

func (v Verdict) checkVerdict() error {
	switch {
	case v.State != Approved && v.State != Denied:
		return fault.Invalid("the answer %q is neither %s nor %s", boundText(string(v.State), 40), Approved, Denied)
	case !v.Scope.isKnown():
		return fault.Invalid("unknown scope %q; known scopes: %s", boundText(string(v.Scope), 40), strings.Join(scopeTexts(scopes()), ", "))
	case len(v.Reason) > maxLong:
		return fault.Invalid("the reason has %d bytes; %d are the limit", len(v.Reason), maxLong)
	case v.Lasts < 0 || v.Lasts > maxLasts:
		return fault.Invalid("an answer lasts up to ten years, or for ever")
	case len(v.IDs) == 0:
		return fault.Invalid("no request is named")
	case len(v.IDs) > 2_000:
		return fault.Invalid("%d requests are named; 2000 at most are answered at once", len(v.IDs))
	}
	return nil
}

// checkSubjects refuses digests and revisions of what is not answered.
func (v Verdict) checkSubjects(subjects []subject) error {
	for id := range v.Revisions {
		if !slices.ContainsFunc(subjects, func(s subject) bool { return s.ID == id }) {
			return fault.Invalid("a revision is given of %q, which is not among the requests that wait", boundText(id, maxShort))
		}
	}
	for id := range v.Digests {
		if !slices.ContainsFunc(subjects, func(s subject) bool { return s.ID == id }) {
			return fault.Invalid("digests are given for %q, which is not among the requests that wait", boundText(id, maxShort))
		}
	}
	return nil
}

// addressed are the requests that ids name, each once: of a tree, which comes first, its
// members that wait. The caller holds q.write.
func (q *Queue) addressed(ctx context.Context, who string, ids []string) ([]subject, error) {
	var subjects []subject
	add := func(e Entry) error {
		more, err := q.membersOf(ctx, e)
		for _, s := range append([]subject{{Entry: e}}, more...) {
			if !slices.ContainsFunc(subjects, func(o subject) bool { return o.ID == s.ID }) {
				subjects = append(subjects, s)
			}
		}
		return err
	}
	for _, id := range ids {
		id = boundText(id, maxShort)
		if !IsGroup(id) {
			e, err := q.cfg.Store.Get(ctx, id)
			if errors.Is(err, fault.ErrNotFound) {
				err = q.refuseAnswer(ctx, who, id, nil, fault.New(fault.ErrNotFound, "there is no request %q", id))
			}
			if err == nil && e.IsTree() && e.asOf(q.now()).State != Pending {
				err = q.refuseAnswer(ctx, who, id, &e, fault.New(fault.ErrConflict, "%s", closed(e.asOf(q.now()))))
			}
			if err == nil {
				err = add(e)
			}
			if err != nil {
				return nil, err
			}
			continue
		}
		group, err := q.cfg.Store.List(ctx, Filter{Group: id, States: []State{Pending}})
		if err != nil {
			return nil, err
		}
		if len(group) == 0 {
			return nil, q.refuseAnswer(ctx, who, id, nil, fault.New(fault.ErrNotFound, "no request of a group %q waits for an answer", id))
		}
		for _, e := range slices.Backward(group) {
			if err := add(e); err != nil {
				return nil, err
			}
		}
	}
	return subjects, nil
}

// membersOf are a tree's members that wait for an answer.
func (q *Queue) membersOf(ctx context.Context, e Entry) ([]subject, error) {
	var subjects []subject
	for _, m := range e.Members {
		own, err := q.cfg.Store.Get(ctx, m.ID)
		if err != nil && !errors.Is(err, fault.ErrNotFound) {
			return nil, err
		}
		if err == nil && own.asOf(q.now()).State == Pending {
			subjects = append(subjects, subject{Entry: own, tree: e.ID, shown: m.Digests})
		}
	}
	return subjects, nil
}

// change is what a verdict makes of one request. An approval of a tree is bound to what
// was shown of each member and is still known of it: what came later asks again.
func (q *Queue) change(v Verdict, e subject, who string, now time.Time) (c change, err error) {
	if r := e.asOf(now); r.State != Pending {
		return change{}, fault.New(fault.ErrConflict, "%s", closed(r))
	}
	shown, given := v.Digests[e.ID]
	bound := Bound(e.Request)
	switch {
	case e.tree != "":
		if !given {
			shown = e.shown
		}
		bound = slices.DeleteFunc(bound, func(d string) bool { return !slices.Contains(shown, d) })
	case given:
		if err := asShown(e.Request, shown); err != nil {
			return change{}, err
		}
	}
	c = change{
		event: EventApproved, id: e.ID, matter: e.matter(), by: boundText(who, maxShort),
		scope: cmp.Or(v.Scope, ScopeFor(e.Kind, v.State)), reason: boundText(v.Reason, maxLong), digests: bound, tree: e.tree, revision: v.Revisions[e.ID],
	}
	if v.State == Approved {
		c.revision = max(e.Revision, 1) // the one named, or of a tree's member the one that the tree's counts
	}
	if err := c.scope.checkScope(e.Kind, v.State); err != nil {
		return change{}, err
	}
	if v.State == Denied {
		c.event = EventDenied
	} else if e.matter().ofRelease() && len(strong(c.digests)) == 0 {
		return change{}, fault.New(fault.ErrConflict, "%s (%s) can't be approved yet: no digest of its files is known that nobody can forge, so the approval would be bound to nothing; ask again once a client fetches it", e.ID, boundText(e.Package.String(), maxShort))
	}
	if v.Lasts > 0 {
		c.expires, err = q.expiryTime(now, v.Lasts)
	}
	return c, err
}

// Bound are the digests that an answer about a request is bound to: those of its files, of
// a call's tool and arguments, or of what a push changes.
func Bound(r Request) []string {
	if r.Call.isNamed() {
		return r.Call.Bound()
	}
	if r.Host.pushes() {
		return []string{r.Host.Push}
	}
	return Digests(r.Files)
}

// Bindable tells that an approval of the request can be bound to something: a release to digests
// that nobody can forge, of which none may be known yet.
func (r Request) Bindable() bool {
	return r.Kind != "" || r.IsTree() || len(strong(Digests(r.Files))) > 0
}

// Digests are all digests of files.
func Digests(files []File) []string {
	var all []string
	for _, f := range files {
		for _, d := range f.Digests {
			if !slices.Contains(all, d) {
				all = append(all, d)
			}
		}
	}
	return all
}

// asShown refuses if a request's files are not those with the shown digests.
func asShown(r Request, shown []string) error {
	for _, f := range r.Files {
		for _, d := range f.Digests {
			if !slices.Contains(shown, d) {
				return fault.New(fault.ErrConflict, "%s has changed since it was shown: the file %s (%s) is new; look at it again", r.ID, f.Name, d)
			}
		}
	}
	for _, d := range shown {
		if !slices.Contains(Bound(r), d) {
			return fault.New(fault.ErrConflict, "%s has changed since it was shown: no file of it has the digest %s; look at it again", r.ID, boundText(d, maxShort))
		}
	}
	return nil
}

// closed says why a request takes no answer.
func closed(r Request) string {
	switch {
	case r.State == Superseded:
		return fmt.Sprintf("%s was superseded by %s: %s", r.ID, r.ReplacedBy, r.Ended)
	case r.State == Expired:
		return fmt.Sprintf("%s has expired: %s; it is asked again when a run wants it", r.ID, r.Ended)
	case r.Answer != nil:
		return fmt.Sprintf("%s was %s by %s at %s already, and the first answer stands; revoke it to be asked again", r.ID, r.State, r.Answer.By, r.Answer.At.Format(time.RFC3339))
	}
	return fmt.Sprintf("%s is %s", r.ID, r.State)
}

// refuseAnswer records an answer that is not taken, and returns why it is not. The
// caller holds q.write; e is nil if there is no such request.
func (q *Queue) refuseAnswer(ctx context.Context, who, id string, e *Entry, why error) error {
	r := audit.Record{
		Kind: audit.KindApproval, Outcome: audit.Failed, Approval: id, User: boundText(who, maxShort),
		Reason: "An answer was refused: " + why.Error() + ".", Detail: map[string]string{detailEvent: eventRefused},
	}
	if e != nil {
		r.Ecosystem, r.Package, r.InstalledVersion, r.SourceURL = string(e.Package.Ecosystem), e.Package.Name, e.Package.Version, e.Upstream
		e.matter().putDetails(r.Detail)
	}
	if _, err := q.cfg.Log.Append(ctx, r); err != nil {
		return unrecorded(err)
	}
	return why
}

// Revoke ends an answer now: later asks wait for a person again. Packages that it let in before
// stay where they are. Only an answer that holds can be revoked; of a tree those of all its members
// are.
func (q *Queue) Revoke(ctx context.Context, who, id, reason string) (Request, error) {
	if len(reason) > maxLong {
		return Request{}, fault.Invalid("the reason has %d bytes; %d are the limit", len(reason), maxLong)
	}
	q.write.Lock()
	defer q.write.Unlock()
	if err := q.ready(ctx); err != nil {
		return Request{}, err
	}
	id = bareID(id)
	if IsGroup(id) {
		return Request{}, fault.Invalid("answers are revoked one by one; name the requests of %s", boundText(id, maxShort))
	}
	e, err := q.cfg.Store.Get(ctx, boundText(id, maxShort))
	if errors.Is(err, fault.ErrNotFound) {
		err = q.refuseAnswer(ctx, who, boundText(id, maxShort), nil, fault.New(fault.ErrNotFound, "there is no request %q", boundText(id, maxShort)))
	}
	if err != nil {
		return Request{}, err
	}
	switch r := e.asOf(q.now()); r.State {
	case Approved, Denied:
	case Pending:
		return Request{}, q.refuseAnswer(ctx, who, e.ID, &e, fault.New(fault.ErrConflict, "%s has no answer yet that could be revoked", e.ID))
	default:
		return Request{}, q.refuseAnswer(ctx, who, e.ID, &e, fault.New(fault.ErrConflict, "%s", closed(r)))
	}
	changes := []change{revoked(e, who, reason)}
	for _, m := range e.Members {
		own, err := q.cfg.Store.Get(ctx, m.ID)
		if err != nil && !errors.Is(err, fault.ErrNotFound) {
			return Request{}, err
		}
		if r := own.asOf(q.now()); err == nil && (r.State == Approved || r.State == Denied) {
			c := revoked(own, who, reason)
			c.tree = e.ID
			changes = append(changes, c)
		}
	}
	if err := q.commit(ctx, changes...); err != nil {
		return Request{}, err
	}
	return q.reader.wholeRequest(ctx, e.ID)
}

func revoked(e Entry, who, reason string) change {
	return change{event: EventRevoked, id: e.ID, matter: e.matter(), by: boundText(who, maxShort), reason: boundText(reason, maxLong)}
}
