package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/credentials"
	egressrequests "github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
)

const tokenPolicy = "network_allowlist: [ api.example ]\ncredentials: { inject: [ { host: api.example, secret: one } ] }\n"

// lending is a daemon whose one secret is lent: each time it is fetched it is another one, as tokens
// are that an endpoint or a vault gives. The one that was lent before is still good at the host.
func lending(source secret.Source, log *approvaltest.Log) *Controller {
	return New(Config{Log: log, FindingsKey: []byte("the installation's"), Secrets: secret.NewBroker([]secret.Declared{{
		Name: "one", Hosts: []string{"api.example"}, How: exchange.Manner{Header: "Authorization", Format: "Bearer {secret}"}, Source: source, Keep: time.Hour,
	}}, time.Now)})
}

func tokenRun(t *testing.T, sandbox string) Run {
	t.Helper()
	p, err := policy.Parse("p", []byte(tokenPolicy))
	must(t, err)
	return Run{Sandbox: sandbox, Run: "run-" + sandbox, Policy: p, Placeholders: map[string]string{"one": "fake-one-of-" + sandbox}}
}

// sentBy sends a sandbox's request, and gives with what credential it left and the answer as it comes in.
func sentBy(t *testing.T, all credentials.Exchanges, sandbox string, body io.Reader) (sent string, answer io.ReadCloser) {
	t.Helper()
	x, err := all.Exchange(t.Context(), egressrequests.Connection{Sandbox: sandbox, Name: "api.example", Port: 443, TLS: true})
	must(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/comments", http.NoBody)
	must(t, err)
	must(t, x.Outgoing(r))
	a := &http.Response{StatusCode: http.StatusOK, Status: "200 OK", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: io.NopCloser(body), Request: r}
	must(t, x.Incoming(a))
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), a.Body
}

func text(t *testing.T, from io.ReadCloser) string {
	t.Helper()
	all, err := io.ReadAll(from)
	must(t, err)
	return string(all)
}

// restarted is another process with the log and the key of one before, which has taken sandboxes over.
func restarted(t *testing.T, source secret.Source, log *approvaltest.Log, sandboxes ...Run) *Controller {
	t.Helper()
	c := lending(source, log)
	for _, r := range sandboxes {
		must(t, c.Restore(t.Context(), r))
	}
	return c
}

// refusedBy sends a request that may get the secret, and gives why it does not leave; "": it does.
func refusedBy(t *testing.T, c *Controller, sandbox string) string {
	t.Helper()
	x, err := credentials.New(c).Exchange(t.Context(), egressrequests.Connection{Sandbox: sandbox, Name: "api.example", Port: 443, TLS: true})
	must(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/comments", http.NoBody)
	must(t, err)
	if err := x.Outgoing(r); err != nil {
		return err.Error()
	}
	return ""
}

const unknownValue = "had another value of it before the daemon was started"

// TestWhatARunHadBeforeARestart: a value that the run has had since its start is in no answer, also
// where a daemon has taken the run over: the host has it, and it is good there. The daemon does not know it,
// so nothing of that run is sent. The controls: in the daemon's own time the one that was renewed is in
// no answer; a run that has not used the secret goes on, and one whose values are known by now does, and has none in.
func TestWhatARunHadBeforeARestart(t *testing.T) {
	log, source := &approvaltest.Log{}, &renewed{}
	before := lending(source, log)
	must(t, before.Register(tokenRun(t, "sb1")))
	must(t, before.Register(tokenRun(t, "sb2")))
	all := credentials.New(before)
	first, _ := sentBy(t, all, "sb1", strings.NewReader(""))
	must(t, before.Declined(t.Context(), door.DeclinedAsk{HostPort: at("api.example"), Secrets: []string{"one"}}))
	second, kept := sentBy(t, all, "sb1", strings.NewReader("kept: the-token-1, the-token-2, the-token-9"))
	if got := text(t, kept); first != "the-token-1" || second != "the-token-2" || got != "kept: xxxxxxxxxxx, xxxxxxxxxxx, the-token-9" {
		t.Fatalf("INCONCLUSIVE: it left with %q and %q, and of what the host keeps %q comes in", first, second, got)
	}
	if why := refusedBy(t, restarted(t, source, log, tokenRun(t, "sb1")), "sb1"); !strings.Contains(why, unknownValue) {
		t.Errorf("after a restart: %q", why)
	}
	if why := refusedBy(t, restarted(t, place("the-token-2"), log, tokenRun(t, "sb1")), "sb1"); !strings.Contains(why, unknownValue) {
		t.Errorf("after a restart, with the last one alone known: %q", why)
	}
	if why := refusedBy(t, restarted(t, source, log, tokenRun(t, "sb2")), "sb2"); why != "" {
		t.Errorf("one that has used none, after a restart: %q", why)
	}
	beside := tokenRun(t, "sb4")
	beside.Run = "run-sb1"
	if why := refusedBy(t, restarted(t, source, log, tokenRun(t, "sb1"), beside), "sb4"); !strings.Contains(why, unknownValue) {
		t.Errorf("another sandbox of the run, after a restart: %q", why)
	}
	after := restarted(t, &queued{"the-token-1", "the-token-2"}, log, tokenRun(t, "sb1"))
	must(t, after.Register(tokenRun(t, "sb3")))
	if why := refusedBy(t, after, "sb3"); why != "" {
		t.Fatal(why)
	}
	_, kept = sentBy(t, credentials.New(after), "sb1", strings.NewReader("kept: the-token-1, the-token-2, the-token-9"))
	if got := text(t, kept); got != "kept: xxxxxxxxxxx, xxxxxxxxxxx, the-token-9" {
		t.Errorf("known by now: %q", got)
	}
}

// queued is a source that gives one after another.
type queued []string

func (q *queued) Fetch(context.Context) (secret.Value, error) {
	next := (*q)[0]
	*q = (*q)[1:]
	return secret.NewValue(next)
}

// TestASecretThatIsAlwaysTheSame: a run goes on with it after each restart. Where it was exchanged at its
// source meanwhile it does not, nor where it is declared no more, nor where a record does not say which it was.
func TestASecretThatIsAlwaysTheSame(t *testing.T) {
	log := &approvaltest.Log{}
	before := lending(place(canary), log)
	must(t, before.Register(tokenRun(t, "sb1")))
	for range 2 {
		if sent, _ := sentBy(t, credentials.New(before), "sb1", strings.NewReader("")); sent != canary {
			t.Fatalf("it leaves with %q", sent)
		}
	}
	for range 2 {
		if sent, kept := sentBy(t, credentials.New(restarted(t, place(canary), log, tokenRun(t, "sb1"))), "sb1", strings.NewReader(canary)); sent != canary || strings.Contains(text(t, kept), canary) {
			t.Errorf("after a restart it leaves with %q", sent)
		}
	}
	if why := refusedBy(t, restarted(t, place("another-secret"), log, tokenRun(t, "sb1")), "sb1"); !strings.Contains(why, unknownValue) {
		t.Errorf("exchanged: %q", why)
	}
	for _, r := range log.All() {
		for part := range strings.FieldsSeq(r.Detail[detailValues]) {
			if digest := newFormer(nil).digestOf("one", canary); strings.Contains(part, digest) {
				t.Error("a digest can be tried without the key")
			}
		}
	}
	silent := newFormer(nil)
	silent.replayRecord(audit.Record{Kind: audit.KindNetwork, Outcome: audit.Used, Rule: "credentials.one"})
	if err := silent.lendMissing(nil, nil); err == nil {
		t.Error("a record that does not say which it was")
	}
}

// TestARecordThatTheLogHasNoMore: a record which says that earlier ones have the values stands for a value that
// nobody knows, once these were moved away. The controls: as long as they are there it adds nothing, and a
// secret that has no value which counts keeps no run from going on.
func TestARecordThatTheLogHasNoMore(t *testing.T) {
	log := &approvaltest.Log{}
	before := lending(place(canary), log)
	must(t, before.Register(tokenRun(t, "sb1")))
	for range 2 {
		_, _ = sentBy(t, credentials.New(before), "sb1", strings.NewReader(""))
	}
	var uses []audit.Record
	for _, r := range log.All() {
		if r.Outcome == audit.Used {
			uses = append(uses, r)
		}
	}
	if len(uses) != 2 {
		t.Fatalf("INCONCLUSIVE: %d uses are on record", len(uses))
	}
	held, err := secret.NewValue(canary)
	must(t, err)
	find := func(records ...audit.Record) error {
		f := newFormer([]byte("the installation's"))
		for _, r := range records {
			f.replayRecord(r)
		}
		return f.lendMissing(map[string][]secret.Value{"one": {held}}, secret.NewBroker(nil, time.Now).Lease())
	}
	if err := find(uses...); err != nil {
		t.Errorf("both are there: %v", err)
	}
	if find(uses[1]) == nil {
		t.Error("the first one is gone, and nobody minds")
	}
	values, _ := newFormer(nil).detailUse("one", []secret.Held{{}}, func(secret.Value) bool { return false })
	if err := find(audit.Record{Outcome: audit.Used, Rule: "credentials.one", Detail: map[string]string{detailValues: values}}); err != nil {
		t.Errorf("none that counts (%s): %v", values, err)
	}
}

// TestSecretsOfThousandsOfRuns: the answers to the gateway stay small messages, and it looks for each value.
func TestSecretsOfThousandsOfRuns(t *testing.T) {
	const runs, small = 300, 256 << 10
	source := &long{}
	c := lending(source, &approvaltest.Log{})
	for i := range runs {
		n := fmt.Sprint("sb", i)
		must(t, c.Register(tokenRun(t, n)))
		a, err := c.Secrets(t.Context(), door.SecretsAsk{HostPort: door.HostPort{Sandbox: n, Name: "api.example", Port: 443}, Uses: []exchange.Use{{Secret: "one", Where: "header"}}})
		must(t, err)
		wire, err := json.Marshal(a)
		if must(t, err); len(wire) > small {
			t.Fatalf("with %d runs an answer of %d bytes", i+1, len(wire))
		}
	}
	told := 0
	for ask, more := (door.LentAsk{Sandbox: "sb0"}), true; more; {
		a, err := c.Lent(t.Context(), ask)
		must(t, err)
		wire, err := json.Marshal(a)
		if must(t, err); len(wire) > small {
			t.Fatalf("an answer of %d bytes", len(wire))
		}
		told, ask.Since, more = told+len(a.Values["one"]), a.Moment, a.More
	}
	if told != runs {
		t.Errorf("%d values are told", told)
	}
	first, last := source.text(1), source.text(runs)
	_, kept := sentBy(t, credentials.New(c), "sb0", strings.NewReader("kept: "+first+" "+last+" like"))
	if got := text(t, kept); strings.Contains(got, first) || strings.Contains(got, last) || !strings.HasSuffix(got, " like") {
		t.Errorf("of what the host keeps comes in: %q", got)
	}
}

// long is a source that gives a long value, another one each time.
type long struct{ count int }

func (*long) text(i int) string {
	return fmt.Sprintf("%04d", i) + strings.Repeat("<token>-", 250) + fmt.Sprintf("%04d", i)
}

func (l *long) Fetch(context.Context) (secret.Value, error) {
	l.count++
	return secret.NewValue(l.text(l.count))
}

// TestAValueThatHasEnded keeps no run from going on.
func TestAValueThatHasEnded(t *testing.T) {
	f := newFormer([]byte("key"))
	for until, want := range map[time.Time]bool{time.Now().Add(-time.Hour): true, time.Now().Add(time.Hour): false, {}: false} {
		held := []secret.Held{{Until: until}}
		values, _ := f.detailUse("one", held, func(secret.Value) bool { return true })
		other := newFormer([]byte("key"))
		other.replayRecord(audit.Record{Outcome: audit.Used, Rule: "credentials.one", Detail: map[string]string{detailValues: values}})
		if err := other.lendMissing(nil, nil); (err == nil) != want {
			t.Errorf("one that ends %v (%s): %v", until, values, err)
		}
	}
}

// TestACopyWhoseSourceHasEnded: what its source had, and nobody knows any more, keeps the copy from
// sending; also one whose own policy has no secret, since the host has it all the same. The controls: one
// of a source that had none, and one whose source lives.
func TestACopyWhoseSourceHasEnded(t *testing.T) {
	for name, c := range map[string]struct {
		uses, lives, restarts bool
		policy                string
		refused               bool
	}{
		"a source that lives":                    {uses: true, lives: true, policy: tokenPolicy},
		"a source that has ended":                {uses: true, policy: tokenPolicy}, // its values are among the last that are known
		"a source that had ended by the restart": {uses: true, restarts: true, policy: tokenPolicy, refused: true},
		"a copy without secrets":                 {uses: true, restarts: true, policy: "network_allowlist: [ { host: api.example, methods: [GET] } ]\n", refused: true},
		"a source that has used none":            {restarts: true, policy: tokenPolicy},
	} {
		log, source := &approvaltest.Log{}, &renewed{}
		ctl := lending(source, log)
		must(t, ctl.Register(tokenRun(t, "sb1")))
		must(t, ctl.SandboxStarted(t.Context(), "sb1"))
		if c.uses {
			_, _ = sentBy(t, credentials.New(ctl), "sb1", strings.NewReader(""))
		}
		of, err := ctl.Lineage(t.Context(), "sb1")
		must(t, err)
		if !c.lives {
			ctl.Unregister("sb1")
		}
		if c.restarts {
			ctl = lending(source, log)
		}
		r := tokenRun(t, "sb2")
		r.Policy, err = policy.Parse("p", []byte(c.policy))
		must(t, err)
		r.Ancestors = of.Ancestors
		must(t, ctl.RegisterCopy(t.Context(), r, nil))
		if why := refusedBy(t, ctl, "sb2"); strings.Contains(why, unknownValue) != c.refused || !c.refused && why != "" {
			t.Errorf("%s: %q", name, why)
		}
	}
}

// TestAStreamThatAnotherRunsValueComesBy: an answer that began before another sandbox, of the same run or
// of another one, was lent its own value of the secret has none of that either. The control: an answer that
// begins afterwards has none, and another text comes.
func TestAStreamThatAnotherRunsValueComesBy(t *testing.T) {
	for _, run := range []string{"run-sb1", "run-sb2"} {
		t.Run("the other sandbox is of "+run, func(t *testing.T) { streamBeside(t, run) })
	}
}

func streamBeside(t *testing.T, run string) {
	t.Helper()
	c := lending(&renewed{}, &approvaltest.Log{})
	must(t, c.Register(tokenRun(t, "sb1")))
	second := tokenRun(t, "sb2")
	second.Run = run
	must(t, c.Register(second))
	all := credentials.New(c)
	host, stream := io.Pipe()
	_, events := sentBy(t, all, "sb1", host)
	told := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(events)
		told <- string(b)
	}()
	write := func(s string) {
		_, err := io.WriteString(stream, s)
		must(t, err)
	}
	write("data: it begins\n\n")
	others, _ := sentBy(t, all, "sb2", strings.NewReader(""))
	if others != "the-token-2" {
		t.Fatalf("INCONCLUSIVE: the other sandbox's request left with %q", others)
	}
	write("data: somebody came with " + others + "\n\n")
	must(t, stream.Close())
	got := <-told
	_, later := sentBy(t, all, "sb1", strings.NewReader("data: somebody came with "+others+", and not with the-token-9\n\n"))
	if control := text(t, later); control != "data: somebody came with xxxxxxxxxxx, and not with the-token-9\n\n" {
		t.Fatalf("INCONCLUSIVE: an answer that begins afterwards: %q", control)
	}
	if strings.Contains(got, others) {
		t.Errorf("the first sandbox is told the value that the other one was lent: %q", got)
	}
}
