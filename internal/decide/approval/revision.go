package approval

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// A request is shown at a revision: what it is about, with its files and its evidence, and
// the runs that it would let in. An answer names the revision that was shown, so that
// nothing and nobody that came meanwhile is let in by it.

// maxRevised bounds the changes that a request tells of.
const maxRevised = 20

// Revised is a change of a request that made a revision of it.
type Revised struct {
	Revision uint64    `json:"revision"` // that it made
	At       time.Time `json:"at"`
	Change   string    `json:"change"` // a sentence's part: "run r2 of ann asks for it, too"
}

// AnswerID is how an answer names a request at the revision that was shown:
// "ap-k3m7qx@2".
func AnswerID(id string, revision uint64) string {
	return id + "@" + strconv.FormatUint(revision, 10)
}

// ParseAnswerID reads it. A bare id has no revision: 0. fault.ErrInvalid: what stands behind
// the "@" is no revision, or nothing stands before it.
func ParseAnswerID(text string) (id string, revision uint64, err error) {
	id, number, named := strings.Cut(text, "@")
	if !named {
		return id, 0, nil
	}
	revision, err = strconv.ParseUint(number, 10, 64)
	if err != nil || revision == 0 || id == "" {
		return "", 0, fault.Invalid("%q names no revision of a request: it is ID@REVISION, such as ap-k3m7qx@2", boundText(text, maxShort))
	}
	return id, revision, nil
}

// bareID is the id of an answer id; one that can't be read names no request.
func bareID(text string) string {
	id, _, err := ParseAnswerID(text)
	if err != nil {
		return boundText(text, maxShort)
	}
	return boundText(id, maxShort)
}

// revised counts what is new in e since it was before; what only says the same again makes
// no revision. A request that an earlier version began is at its first.
func (e Entry) revised(before Entry, c change) Entry {
	what := changesSince(before, e, c)
	e.Revision = max(before.Revision, 1)
	if len(what) == 0 {
		return e
	}
	e.Revision++
	e.Revisions = append(slices.Clone(before.Revisions), Revised{Revision: e.Revision, At: c.at, Change: boundText(strings.Join(what, "; "), maxLong)})
	e.Revisions = e.Revisions[max(len(e.Revisions)-maxRevised, 0):]
	return e
}

// changesSince says what a change has brought.
func changesSince(before, e Entry, c change) []string {
	var what []string
	for _, w := range e.Runs[len(before.Runs):] {
		name := "run " + w.Run
		if i := slices.IndexFunc(e.Asks, func(a Asker) bool { return a.Run == w.Run && a.Policy == w.Policy }); i >= 0 {
			name = e.Asks[i].Name()
		}
		what = append(what, name+" asks for it, too, under the policy "+w.Policy)
	}
	for _, f := range unknown(before.Files, c.files) {
		if slices.ContainsFunc(before.Files, func(k File) bool { return k.Name == f.Name }) {
			what = append(what, "more is known of the file "+f.Name)
			continue
		}
		what = append(what, fmt.Sprintf("the file %s (%s) is new", f.Name, strings.Join(f.Digests, " ")))
	}
	if c.evidence != nil {
		if fields := otherEvidence(before.Evidence, e.Evidence); len(fields) > 0 {
			what = append(what, "its evidence says more: "+strings.Join(fields, ", "))
		}
	}
	for _, m := range e.Members[len(before.Members):] {
		what = append(what, m.Package.String()+" is in it, too")
	}
	return what
}

// otherEvidence names the fields that differ, as JSON has them.
func otherEvidence(before, now evidence.Evidence) []string {
	a, b := fieldsOf(before), fieldsOf(now)
	var names []string
	for name, value := range b {
		if !bytes.Equal(a[name], value) {
			names = append(names, name)
		}
	}
	for name := range a {
		if _, is := b[name]; !is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func fieldsOf(e evidence.Evidence) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	text, err := json.Marshal(e)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil { // no value of it is one that JSON has not
		return map[string]json.RawMessage{"evidence": []byte(err.Error())}
	}
	return fields
}

// withRevisionsOf puts a tree's members into its revision: it counts theirs, so that a change of one is a
// change of the tree.
func (r Request) withRevisionsOf(members []Entry) Request {
	r.Revision = max(r.Revision, 1)
	r.Revisions = slices.Clone(r.Revisions)
	for _, m := range members {
		if m.ID == "" {
			continue // it was erased
		}
		r.Revision += max(m.Revision, 1)
		for _, change := range m.Revisions {
			change.Change = m.ID + " (" + boundText(m.matter().String(), maxShort) + "): " + change.Change
			r.Revisions = append(r.Revisions, change)
		}
	}
	slices.SortStableFunc(r.Revisions, func(a, b Revised) int { return a.At.Compare(b.At) })
	for i := range r.Revisions {
		r.Revisions[i].Revision = r.Revision - uint64(len(r.Revisions)-1-i)
	}
	r.Revisions = r.Revisions[max(len(r.Revisions)-maxRevised, 0):]
	return r
}

// changedSince refuses an answer that was given on another revision than r is at, and says
// what has changed.
func (r Request) changedSince(revision uint64) error {
	if revision == r.Revision {
		return nil
	}
	if revision > r.Revision {
		return fault.New(fault.ErrConflict, "%s has no revision %d; it is at revision %d: look at it again (cofferdam approvals show %s) and answer on what that shows", r.ID, revision, r.Revision, r.ID)
	}
	var what []string
	for _, change := range r.Revisions {
		if change.Revision > revision {
			what = append(what, change.Change)
		}
	}
	if missing := r.Revision - revision - uint64(len(what)); missing > 0 {
		what = append([]string{fmt.Sprintf("%d earlier changes", missing)}, what...)
	}
	return fault.New(fault.ErrConflict, "%s has changed since revision %d, on which the answer was given; it is at revision %d now: %s; look at it again (cofferdam approvals show %s) and answer on what that shows",
		r.ID, revision, r.Revision, boundText(strings.Join(what, "; "), maxLong), r.ID)
}

// onRevisions refuses a verdict that does not say of each request which revision was shown,
// or names another than it is at. A denial need not say it: it lets nothing and nobody in.
// The caller holds q.write.
func (q *Queue) onRevisions(ctx context.Context, who string, v Verdict, subjects []subject) error {
	covered := map[string]bool{} // by a tree that was shown with it
	for _, s := range subjects {
		for _, m := range s.Members {
			covered[m.ID] = covered[m.ID] || v.Revisions[s.ID] > 0
		}
	}
	for _, s := range subjects {
		revision := v.Revisions[s.ID]
		if revision == 0 {
			if v.State == Approved && !covered[s.ID] {
				return fault.Invalid("the approval does not say which revision of %s was looked at; cofferdam approvals show %s prints it, and %s@REVISION names it", s.ID, s.ID, s.ID)
			}
			continue
		}
		now := s.asOf(q.now())
		if now.State != Pending {
			continue // that is why it takes no answer
		}
		now, _, err := q.reader.revised(ctx, now)
		if err != nil {
			return err
		}
		if err := now.changedSince(revision); err != nil {
			return q.refuseAnswer(ctx, who, s.ID, &s.Entry, err)
		}
	}
	return nil
}

// showed refuses an approval of a tree's member that was not shown with the others: where somebody
// says what was shown of one, all are named of which that can be said.
func (v Verdict) showed(s subject, subjects []subject) error {
	if _, named := v.Digests[s.ID]; named || s.tree == "" || v.State != Approved {
		return nil
	}
	for _, other := range subjects {
		if _, named := v.Digests[other.ID]; named && other.tree == s.tree {
			return fault.New(fault.ErrConflict, "%s is among the releases that %s would let in (%s), and not among those that were shown; look at it again (cofferdam approvals show %s) and answer on what that shows",
				s.ID, s.tree, boundText(s.Package.String(), maxShort), s.tree)
		}
	}
	return nil
}
