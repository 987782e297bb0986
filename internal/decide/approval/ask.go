package approval

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Ask files an ask, or joins the request of the same owner that waits for the release and
// adds what that did not know; on record when it returns. Where a known file has
// another digest now the request is superseded by a new one. An answer that
// covers the ask already is returned as it is. Past the limits it is
// fault.ErrForbidden.
func (q *Queue) Ask(ctx context.Context, ask Ask) (Request, error) {
	ask, err := cleanAsk(mask(q.cfg.Mask).maskAsk(ask))
	if err != nil {
		return Request{}, err
	}
	q.write.Lock()
	defer q.write.Unlock()
	if err := q.ready(ctx); err != nil {
		return Request{}, err
	}
	now := q.now()
	s, err := q.nextStep(ctx, ask, now)
	switch {
	case err != nil:
		return Request{}, err
	case s.answer != nil:
		return *s.answer, nil
	case s.joins != nil:
		return q.joinRequest(ctx, *s.joins, ask, now)
	}
	return q.beginRequest(ctx, s.closing, ask, now)
}

// step is what an ask comes to: an answer that holds already, a pending request that it
// joins, or, with neither, a new one in the place of those that end with it.
type step struct {
	answer  *Request
	joins   *Entry
	closing []change
}

// nextStep looks, and changes nothing. The caller holds q.write.
func (q *Queue) nextStep(ctx context.Context, ask Ask, now time.Time) (step, error) {
	if r, ok, err := q.newestAnswer(ctx, ask, now); err != nil || ok {
		return step{answer: &r}, err
	}
	id, ok := q.board.waitingFor(ask)
	if !ok {
		return step{}, nil
	}
	e, err := q.cfg.Store.Get(ctx, id)
	if err != nil {
		return step{}, err
	}
	other := contradicted(e.Files, ask.Files)
	switch r := e.asOf(now); {
	case r.State != Pending:
		return step{closing: []change{expired(e, r)}}, nil
	case other != "":
		return step{closing: []change{{event: EventSuperseded, id: e.ID, matter: e.matter(), ended: "the file " + other + " has another digest now"}}}, nil
	}
	return step{joins: &e}, nil
}

// contradicted names a known file that has another digest now: both tell one of
// the same algorithm, and they differ.
func contradicted(known, seen []File) string {
	for _, f := range seen {
		i := slices.IndexFunc(known, func(k File) bool { return k.Name == f.Name })
		if i < 0 {
			continue
		}
		for _, d := range f.Digests {
			algorithm, _, _ := strings.Cut(d, ":")
			if slices.ContainsFunc(known[i].Digests, func(k string) bool { return k != d && strings.HasPrefix(k, algorithm+":") }) {
				return f.Name
			}
		}
	}
	return ""
}

// newestAnswer is the newest answer that holds for the asking run and settles the
// whole ask. It is there when a person was quicker than the one who asks.
func (q *Queue) newestAnswer(ctx context.Context, ask Ask, now time.Time) (Request, bool, error) {
	entries, err := q.cfg.Store.Answers(ctx, ask.matter().project(), ask.Run, ask.Policy)
	if err != nil {
		return Request{}, false, err
	}
	for _, e := range slices.Backward(entries) {
		if e.matter().matterKey() != ask.matter().matterKey() || !e.answers(ask.askerOf()) {
			continue
		}
		if r := e.asOf(now); r.State == Denied || r.State == Approved && (!ask.matter().ofRelease() || coversFiles(r.Answer.Digests, ask.Files)) {
			return r, true, nil
		}
	}
	return Request{}, false, nil
}

// coversFiles tells whether each file has a strong digest that was shown.
func coversFiles(shown []string, files []File) bool {
	for _, f := range files {
		if !slices.ContainsFunc(f.Digests, func(d string) bool { return policy.StrongDigest(d) && slices.Contains(shown, d) }) {
			return false
		}
	}
	return len(files) > 0
}

// joinRequest adds an ask to a pending request. Facts that it knows already are no change.
func (q *Queue) joinRequest(ctx context.Context, e Entry, ask Ask, now time.Time) (Request, error) {
	changes, err := q.joining(ctx, e, ask, now)
	if err != nil {
		return Request{}, err
	}
	if len(changes) > 0 {
		if err := q.commit(ctx, changes...); err != nil {
			return Request{}, err
		}
	}
	return q.reader.getFor(ctx, e.ID, ask.Run)
}

func (q *Queue) joining(ctx context.Context, e Entry, ask Ask, now time.Time) ([]change, error) {
	more := unknown(e.Files, ask.Files)
	known, grown := mergeEvidence(e.Evidence, ask.Evidence)
	if grown {
		var err error
		if known, err = q.compare(ctx, ask, mergeFiles(e.Files, more), known); err != nil {
			return nil, err
		}
		grown = !lacksEvidence(known, e.Evidence)
	}
	q.board.groupOf(ask, now, q.cfg.Limits.Burst)
	newcomer := !e.askedBy(ask.Run, ask.Policy) && len(e.Runs) < maxRuns
	if !newcomer && !grown && len(more) == 0 {
		return nil, nil
	}
	if err := checkNameable(mergeFiles(e.Files, more), ask.Package); err != nil {
		return nil, err
	}
	c := change{event: EventJoined, id: e.ID, matter: e.matter(), asker: ask.askerOf(), rule: ask.Rule, reason: ask.Reason}
	if grown {
		c.evidence = &known
	}
	return inParts(c, more), nil
}

// unknown are files of seen that a request does not know, or knows less of.
func unknown(known, seen []File) []File {
	var more []File
	for _, f := range seen {
		i := slices.IndexFunc(known, func(k File) bool { return k.Name == f.Name })
		if i < 0 || !sameFile(mergeFile(known[i], f), known[i]) {
			more = append(more, f)
		}
	}
	return more
}

func sameFile(a, b File) bool {
	return a.Kind == b.Kind && a.Size == b.Size && a.Scripts == b.Scripts && a.Published.Equal(b.Published) && slices.Equal(a.Digests, b.Digests)
}

// checkNameable refuses what no answer's record could name.
func checkNameable(files []File, pkg pkgref.Ref) error {
	bytes := 0
	for _, f := range files {
		for _, d := range f.Digests {
			bytes += len(d) + 1
		}
	}
	if len(files) > maxFiles || bytes > maxBound {
		return fault.New(fault.ErrForbidden, "%s has more files than a person can be asked about (%d)", boundText(pkg.String(), maxShort), maxFiles)
	}
	return nil
}

// inParts spreads files over as many changes as keep each record small. The
// first is c; the others only add files.
func inParts(c change, files []File) []change {
	changes := []change{c}
	size := 0
	for _, f := range files {
		last := &changes[len(changes)-1]
		if n := encodedSize(f) + 1; len(last.files) == 0 || size+n <= maxFileData {
			last.files = append(last.files, f)
			size += n
			continue
		}
		changes = append(changes, change{event: EventJoined, id: c.id, matter: c.matter, files: []File{f}})
		size = encodedSize(f) + 1
	}
	return changes
}

func (a Ask) askerOf() Asker {
	return Asker{
		Run: a.Run, Sandbox: a.Sandbox, Policy: a.Policy, PolicyName: a.PolicyName, Token: a.Token, OwnerKey: a.OwnerKey,
		User: a.User, Task: a.Task, Because: a.Because, WantedBy: a.WantedBy,
	}
}

// beginRequest makes a new request, and ends those in whose place it comes.
func (q *Queue) beginRequest(ctx context.Context, closing []change, ask Ask, now time.Time) (Request, error) {
	if err := checkNameable(ask.Files, ask.Package); err != nil {
		return Request{}, err
	}
	yielding, err := q.admitRequest(ctx, ask, room{requests: 1, releases: 1, closing: len(closing)}, now)
	if err != nil {
		return Request{}, err
	}
	id, changes, err := q.beginning(ctx, append(closing, yielding...), ask, now)
	if err != nil {
		return Request{}, err
	}
	if err := q.commit(ctx, changes...); err != nil {
		return Request{}, err
	}
	return q.reader.getRequest(ctx, id)
}

// beginning are the changes of a new request, for which there is room.
func (q *Queue) beginning(ctx context.Context, closing []change, ask Ask, now time.Time) (id string, changes []change, err error) {
	if err := checkNameable(ask.Files, ask.Package); err != nil {
		return "", nil, err
	}
	evidence, err := q.compare(ctx, ask, ask.Files, ask.Evidence)
	if err != nil {
		return "", nil, err
	}
	if id, err = q.freshID(ctx); err != nil {
		return "", nil, err
	}
	for i := range closing {
		if closing[i].event == EventSuperseded {
			closing[i].replacedBy = id
		}
	}
	c := change{
		event: EventAsked, id: id, matter: ask.matter(), asker: ask.askerOf(), rule: ask.Rule, reason: ask.Reason,
		group: q.board.groupOf(ask, now, q.cfg.Limits.Burst), evidence: &evidence, expires: now.Add(q.cfg.PendingExpires), byPerson: ask.ByPerson, notes: ask.Notes,
	}
	return id, slices.Concat(closing, inParts(c, ask.Files)), nil
}

// freshID is an id that no request ever had.
func (q *Queue) freshID(ctx context.Context) (string, error) {
	for {
		id := newID(idPrefix)
		_, err := q.cfg.Store.Get(ctx, id)
		switch {
		case errors.Is(err, fault.ErrNotFound):
			return id, nil
		case err != nil:
			return "", err
		}
	}
}
