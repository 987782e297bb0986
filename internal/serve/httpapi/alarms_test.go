package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
)

// TestAlarmsSinceARecord: who asks for the alarms of a run or a sandbox is told of those that
// came since he asked before, of each once; a token of its own, by numbers that tell it nothing.
func TestAlarmsSinceARecord(t *testing.T) {
	t.Parallel()
	in, ctx := serve(t), t.Context()
	ann, tok := in.as(token.Grant{Name: "ann"})
	bob, _ := in.as(token.Grant{Name: "bob"})
	seqs := map[string]uint64{}
	appendOne := func(r audit.Record) {
		t.Helper()
		done, err := in.log.Append(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		seqs[r.Package] = done.Seq
	}
	begin := func(run, sandbox, owner string) {
		appendOne(audit.Record{Kind: audit.KindSandbox, Outcome: audit.Started, Run: run, Sandbox: sandbox, Token: owner, Detail: map[string]string{"token": owner}})
	}
	alarm := func(name, run, sandbox string, detail map[string]string) {
		appendOne(audit.Record{Kind: audit.KindPackage, Outcome: audit.Alarm, Run: run, Sandbox: sandbox, Ecosystem: "python", Package: name, InstalledVersion: "1.0", Reason: "it is " + name, Detail: detail})
	}
	begin("hers", "sbhers", tok.ID)
	begin("hers", "sbother", tok.ID)
	begin("his", "sbhis", "")
	alarm("before", "hers", "sbhers", nil)

	askers := map[string]*client.Client{"the host": in.host, "her token": ann}
	where := map[string]client.AlarmFilter{"the run": {Run: "hers"}, "the sandbox": {Sandbox: "sbhers"}}
	next := map[string]string{}
	ask := func(who, what string) api.Alarms {
		t.Helper()
		f := where[what]
		f.After = next[who+what]
		got, err := client.Alarms(ctx, askers[who], f)
		if err != nil {
			t.Fatal(err)
		}
		next[who+what] = got.Next
		return got
	}
	wants := func(when string, want map[string][]string) {
		t.Helper()
		for who := range askers {
			for what := range where {
				got := ask(who, what)
				var names []string
				for _, a := range got.Alarms {
					names = append(names, a.Package.Name)
					if told := a.Seq == seqs[a.Package.Name]; told != (who == "the host") || a.Reason == "" || a.Count != 1 || a.Time.IsZero() {
						t.Errorf("%s: %s is told of %+v", when, who, a)
					}
				}
				if !slices.Equal(names, want[what]) || got.Total != len(names) || got.Run != "hers" {
					t.Errorf("%s: %s is told of %s: %v (%d), want %v", when, who, what, names, got.Total, want[what])
				}
			}
		}
	}
	wants("at first", nil)
	wants("when nothing has come", nil)
	alarm("here", "hers", "sbhers", nil)
	alarm("beside", "hers", "sbother", nil)
	alarm("others", "his", "sbhis", nil)
	alarm("later", "", "", map[string]string{audit.DetailRuns: "another hers"}) // found in the log
	alarm("later-others", "", "", map[string]string{audit.DetailRuns: "another hersx"})
	appendOne(audit.Record{Kind: audit.KindPackage, Outcome: audit.Blocked, Run: "hers", Sandbox: "sbhers", Ecosystem: "python", Package: "no-alarm"})
	wants("then", map[string][]string{"the run": {"here", "beside", "later"}, "the sandbox": {"here", "later"}})
	wants("and again", nil)
	alarm("last", "", "", map[string]string{audit.DetailRuns: "hers"}) // with nothing of the run behind it
	wants("of the log's alone", map[string][]string{"the run": {"last"}, "the sandbox": {"last"}})
	wants("and once", nil)
	for who, c := range askers {
		if got, err := client.Alarms(ctx, c, client.AlarmFilter{Run: "hers"}); err != nil || got.Total != 0 || got.Next != next[who+"the run"] {
			t.Errorf("%s begins at %s, and goes on at %s: %v", who, got.Next, next[who+"the run"], err)
		}
	}

	// Nothing that others do shows in a position.
	for what := range where {
		before, again := ask("her token", what).Next, next["her token"+what]
		appendOne(audit.Record{Kind: audit.KindCommand, Outcome: audit.Started, Run: "his", Sandbox: "sbhis"})
		alarm("later-others", "", "", map[string]string{audit.DetailRuns: "his"})
		if after := ask("her token", what).Next; after != before || again != before {
			t.Errorf("what others do changes the position of %s: %s, then %s", what, before, after)
		}
		fresh, err := client.Alarms(ctx, ann, where[what])
		if err != nil || fresh.Next != before || fresh.Total != 0 {
			t.Errorf("who asks anew is told of %s: %+v, %v; want %s", what, fresh, err, before)
		}
	}

	for what, f := range map[string]client.AlarmFilter{"a run": {Run: "hers"}, "a sandbox": {Sandbox: "sbhers"}, "a run of the host": {Run: "his"}} {
		if _, err := client.Alarms(ctx, bob, f); client.StatusOf(err) != http.StatusNotFound {
			t.Errorf("%s of somebody else: %v", what, err)
		}
	}
	for _, after := range []string{"x", "-1", "999999999"} {
		if _, err := client.Alarms(ctx, in.host, client.AlarmFilter{Run: "hers", After: after}); client.StatusOf(err) != http.StatusBadRequest {
			t.Errorf("after=%s: %v", after, err)
		}
	}
	for i := range 150 {
		alarm(fmt.Sprint("many", i), "hers", "sbhers", nil)
	}
	if got := ask("the host", "the run"); len(got.Alarms) != 100 || got.Total != 150 {
		t.Errorf("of 150 there are %d, and %d in all", len(got.Alarms), got.Total)
	}
	if got := ask("the host", "the run"); got.Total != 0 {
		t.Errorf("and %d again", got.Total)
	}
}
