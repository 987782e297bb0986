package containment

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// control says where a probe must escape.
type control int

const (
	inWeak  control = iota // in the weak sandbox
	outside                // in no sandbox: the weak one is still too strong for it
)

// attempt is one probe against one way out, judged by the sightings.
type attempt struct {
	name    string
	control control
	args    []string // TOKEN stands for the token
	weakly  []string // the control's, where they must differ

	// denied is what the log has of it, a rule and words of the name or the reason, by the
	// column of the matrix; none if it does not come to the host.
	denied map[string]string
}

// with puts a token into arguments.
func with(args []string, token string) []string {
	all := make([]string, 0, len(args))
	for _, a := range args {
		all = append(all, strings.ReplaceAll(a, "TOKEN", token))
	}
	return all
}

// batch is several attempts as one run of the probe, each with a token of its
// own.
type batch struct {
	args   []string
	tokens map[string]string // token -> the attempt's name
}

func (s *stage) batch(t *testing.T, attempts []attempt, arguments func(attempt) []string) batch {
	t.Helper()
	b := batch{tokens: map[string]string{}}
	var list [][]string
	for _, a := range attempts {
		token := s.newToken()
		b.tokens[token] = a.name
		list = append(list, with(arguments(a), token))
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	b.args = []string{"batch", string(text)}
	return b
}

// named finds the attempt that a sighting is of.
func (b batch) named(e sighting) string {
	for token, name := range b.tokens {
		if strings.Contains(e.text, token) {
			return name
		}
	}
	return "something"
}

// try runs attempts in a sandbox in every manner, and in one that was restored and
// one out of the pool as two users, walks the golden path in each, then runs their
// controls. If the oracles see something of the first, that is an escape; where they see nothing
// of a control, nothing is proved.
func (s *stage) try(t *testing.T, attempts []attempt) *sandbox {
	t.Helper()
	b := s.open(t, nil)
	s.attack(t, b, attempts, manners())
	s.goldenPath(t, b)
	for kind, made := range s.kinds() {
		t.Run(kind, func(t *testing.T) {
			b := made(t)
			s.attack(t, b, attempts, manners()[:2])
			s.goldenPath(t, b)
		})
	}
	t.Run("controls", func(t *testing.T) { s.controls(t, attempts) })
	return b
}

// attack tries them in each manner, and tells what each was.
func (s *stage) attack(t *testing.T, b *sandbox, attempts []attempt, as []manner) (all []batch) {
	t.Helper()
	for _, m := range as {
		work := s.batch(t, attempts, func(a attempt) []string { return a.args })
		mark, requests := s.seen.mark(), len(s.registry.Requests())
		got := b.probe(t, m, work.args...)
		if n := strings.Count(got.text, "attempt ["); n != len(attempts) {
			t.Errorf("INCONCLUSIVE as %s: %d of %d attempts were made: %.2000s", m.name, n, len(attempts), got.text)
		}
		report(t, m, work, s.escapes(t, mark, requests))
		all = append(all, work)
	}
	return all
}

// report fails once for each attempt and oracle, with the first that it saw.
func report(t *testing.T, m manner, work batch, seen []sighting) {
	t.Helper()
	count := map[string]int{}
	for _, e := range seen {
		if key := work.named(e) + e.oracle; count[key] == 0 {
			t.Errorf("ESCAPED: %s as %s: %s", work.named(e), m.name, e)
		}
		count[work.named(e)+e.oracle]++
	}
}

func (s *stage) controls(t *testing.T, attempts []attempt) {
	t.Helper()
	arguments := func(a attempt) []string {
		if a.weakly != nil {
			return a.weakly
		}
		return a.args
	}
	for _, where := range []control{inWeak, outside} {
		chosen := slices.DeleteFunc(slices.Clone(attempts), func(a attempt) bool { return a.control != where })
		if len(chosen) == 0 {
			continue
		}
		work := s.batch(t, chosen, arguments)
		mark, requests := s.seen.mark(), len(s.registry.Requests())
		var got outcome
		if where == inWeak {
			got = s.weak.open(t).probe(t, work.args...)
		} else {
			got = s.outside(t, nil, work.args...)
		}
		for _, a := range s.unseen(t, work, chosen, mark, requests) {
			t.Errorf("INCONCLUSIVE: %s does not escape from the control either; the probe says:\n%s", a.name, got.text)
		}
	}
}

// unseen are the attempts of a control that no oracle has seen. Not each oracle is one whose
// sightings escapes waits for, so that a control's are looked for again for a while.
func (s *stage) unseen(t *testing.T, work batch, chosen []attempt, mark, requests int) (left []attempt) {
	t.Helper()
	late := time.NewTimer(waitTimeout)
	defer late.Stop()
	for {
		escaped := map[string]bool{}
		for _, e := range s.escapes(t, mark, requests) {
			escaped[work.named(e)] = true
		}
		left = slices.DeleteFunc(slices.Clone(chosen), func(a attempt) bool { return escaped[a.name] })
		if len(left) == 0 {
			return nil
		}
		select {
		case <-pause():
		case <-late.C:
			return left
		}
	}
}

// goldenPath: what is allowed still works: a command, an approved package by
// its real name, and its record.
func (s *stage) goldenPath(t *testing.T, b *sandbox) {
	t.Helper()
	// An attempt may have used up what a sandbox may ask for in a second: clients ask again.
	await(t, "the approved package to arrive", func() bool {
		got := b.probe(t, manner{}, "fetch", registryHost, "golden")
		arrived := strings.Contains(got.text, "installed /p/golden-1.0")
		if !arrived {
			t.Logf("the approved package does not arrive: %s", got.text)
		}
		return arrived
	})
	served := func(r audit.Record) bool { return r.Outcome == audit.Served && r.Package == "golden" }
	if !slices.ContainsFunc(b.records(t), served) {
		t.Error("the approved package arrived without a record")
	}
}

// blocked lists the names of the run that the log says were refused.
func blocked(records []audit.Record) []string {
	var names []string
	for _, r := range records {
		if r.Kind == audit.KindNetwork && r.Outcome == audit.Blocked {
			names = append(names, r.Detail["name"])
		}
	}
	return names
}
