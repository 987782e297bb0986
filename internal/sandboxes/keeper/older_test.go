package keeper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
)

func trackSome(ctx context.Context, c *Client) error {
	return c.Track(ctx, "box", []process.ID{{Pid: 7, Start: 70}, {Pid: 9}})
}

func recordedRequests(t *testing.T) []spoken {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(recorded, "requests.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var all []spoken
	for line := range bytes.Lines(text) {
		var s spoken
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

func recordedFields(t *testing.T, of string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(recorded, "fields.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string][]string
	if err := json.Unmarshal(text, &all); err != nil || len(all[of]) == 0 {
		t.Fatal(of, err)
	}
	return all[of]
}

// TestAnOlderKeeperIsAskedInItsOwnWords: to a keeper of protocol 0 goes what its
// own client sent, to the letter.
func TestAnOlderKeeperIsAskedInItsOwnWords(t *testing.T) {
	o := listenAsOlder(t)
	everyVerb(t.Context(), Dial(o.socket))
	text := func(all []spoken) []string {
		var lines []string
		for _, s := range all {
			if s.Verb == VerbPing { // a keeper may be asked what it is as often as one likes
				continue
			}
			line, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(line))
		}
		return lines
	}
	got, want := text(o.heard()), text(recordedRequests(t))
	if !slices.Equal(got, want) {
		t.Errorf("sent:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestAnOlderDaemonIsUnderstood: this keeper knows all that a client of protocol 0
// sends, and its answers have all that such a client reads.
func TestAnOlderDaemonIsUnderstood(t *testing.T) {
	for of, now := range map[string]reflect.Type{
		"request": reflect.TypeFor[Request](), "response": reflect.TypeFor[Response](), "identity": reflect.TypeFor[StreamIdentity](),
	} {
		have := fields(now, "")
		for _, f := range recordedFields(t, of) {
			if !slices.Contains(have, f) {
				t.Errorf("the field %s of a %s of protocol 0 is gone", f, of)
			}
		}
	}
	s := newStage(t)
	for _, r := range recordedRequests(t) {
		if r.Verb == VerbShutdown {
			continue // at the end, by the stage
		}
		raw, err := (&net.Dialer{}).DialContext(t.Context(), "unix", filepath.Join(s.dir, "k.sock"))
		s.must(err)
		conn := channel.NewConn(raw)
		s.must(conn.WriteFrame(channel.FrameOpen, r.Frames[0]))
		for _, frame := range r.Frames[1:] {
			_ = conn.WriteFrame(channel.FrameOpen, frame) // it may have been refused already, and the connection closed
		}
		var answer Response
		s.must(conn.ReadJSON(channel.FrameReply, &answer))
		if strings.Contains(answer.Error, "unknown field") || strings.Contains(answer.Error, "does not know") {
			t.Errorf("%s: %+v", r.Frames[0], answer)
		}
		_ = raw.Close()
	}
}

// TestWhatIsNewHasAFeature: every field of a request that protocol 0 did not have
// is named by a feature, without which it is not sent.
func TestWhatIsNewHasAFeature(t *testing.T) {
	since := map[string]Feature{
		".processes.pid": FeatureProcesses, ".processes.start": FeatureProcesses, ".freeze.fresh": FeatureFresh, ".launch.fresh": FeatureFresh,
	}
	samples := map[Feature]Request{FeatureProcesses: {Processes: []process.ID{{Pid: 2}}}, FeatureFresh: {Freeze: &Freeze{Fresh: true}}, FeatureOutput: {Verb: VerbOutput}, FeatureSettle: {Verb: VerbSettle}}
	old := recordedFields(t, "request")
	for _, f := range fields(reflect.TypeFor[Request](), "") {
		if slices.Contains(old, f) || strings.HasPrefix(f, ".adopt.exit.") || f == ".adopt.timeout_ms" { // which no client sends
			continue
		}
		if since[f] == "" {
			t.Errorf("keepers of older releases refuse the field %s: give it a feature, and count the protocol", f)
		}
		delete(since, f)
	}
	for f := range since {
		t.Errorf("there is no field %s", f)
	}
	for _, f := range Features() {
		sample, ok := samples[f]
		if needed := sample.neededFeatures(); !ok || !slices.Equal(needed, []Feature{f}) {
			t.Errorf("a request with the feature %s needs %v", f, needed)
		}
		if err := (meeting{}).checkRequest(&sample); !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), string(f)) || !strings.Contains(err.Error(), "protocol 0") {
			t.Errorf("without the feature %s: %v", f, err)
		}
		if err := (meeting{hello: Hello{Features: Features()}}).checkRequest(&sample); err != nil {
			t.Error(err)
		}
	}
	if lacks := (Hello{}).Lacks(); !slices.Equal(lacks, Features()) || len((Hello{Features: Features()}).Lacks()) > 0 {
		t.Errorf("%v", lacks)
	}
}

// aged puts a keeper of protocol 0 in front of a stage's: it refuses what such a
// one did not know, and leaves out of the answers what it did not tell.
func (s *stage) aged() *Client {
	s.t.Helper()
	knows, tells := recordedFields(s.t, "request"), recordedFields(s.t, "response")
	socket := filepath.Join(s.dir, "old.sock")
	l, err := (&net.ListenConfig{}).Listen(s.t.Context(), "unix", socket)
	s.must(err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { s.serveAged(raw, knows, tells) })
		}
	})
	s.t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return Dial(socket)
}

func (s *stage) serveAged(raw net.Conn, knows, tells []string) {
	defer raw.Close()
	near := channel.NewConn(raw)
	_, first, err := near.ReadFrame()
	if err != nil {
		return
	}
	var asked any
	if json.Unmarshal(first, &asked) != nil || !reflect.DeepEqual(asked, only(asked, "", knows)) {
		sendResponse(near, Response{Category: "invalid", Error: "unknown field"})
		return
	}
	far, err := (&net.Dialer{}).DialContext(context.WithoutCancel(s.t.Context()), "unix", filepath.Join(s.dir, "k.sock"))
	if err != nil {
		return
	}
	defer far.Close()
	conn := channel.NewConn(far)
	if conn.WriteFrame(channel.FrameOpen, first) != nil {
		return
	}
	go func() {
		_, _ = io.Copy(far, raw)
		_ = conn.CloseWrite()
	}()
	for {
		kind, payload, err := conn.ReadFrame()
		if err != nil {
			return
		}
		var answered any
		if kind == channel.FrameReply && json.Unmarshal(payload, &answered) == nil {
			payload, _ = json.Marshal(only(answered, "", tells))
		}
		if near.WriteFrame(kind, payload) != nil {
			return
		}
	}
}

// only keeps the fields of a JSON value that are listed, and what is below one that
// is listed itself.
func only(v any, path string, listed []string) any {
	switch v := v.(type) {
	case map[string]any:
		if slices.Contains(listed, path) {
			return v
		}
		kept := map[string]any{}
		for name, value := range v {
			at := path + "." + name
			if slices.ContainsFunc(listed, func(f string) bool { return f == at || strings.HasPrefix(f, at+".") }) {
				kept[name] = only(value, at, listed)
			}
		}
		return kept
	case []any:
		kept := []any{}
		for _, value := range v {
			kept = append(kept, only(value, path, listed))
		}
		return kept
	default:
		return v
	}
}

// TestALifeUnderAnOlderKeeper: a sandbox is made, used, frozen, thawed and ended.
func TestALifeUnderAnOlderKeeper(t *testing.T) {
	s := newStage(t)
	old := s.aged()
	s.Client, s.t = old, t
	hello, err := old.Hello(t.Context())
	if err != nil || hello.Protocol != 0 || len(hello.Features) > 0 {
		t.Fatalf("%+v, %v", hello, err)
	}
	if _, err := old.askRaw(t.Context(), `{"verb":"track","id":"box","processes":[{"pid":2,"start":3}]}`); !errors.Is(err, fault.ErrInvalid) {
		t.Fatalf("the control, a field that it does not know: %v", err)
	}
	pids := s.starter("box")
	s.must(s.Track(t.Context(), "box", identified(pids)))
	if box := s.get("box"); !slices.Equal(box.Pids, pids) {
		t.Errorf("%+v", box)
	}
	s.run("box", "c", ExecOptions{RingBytes: 1 << 20}, "cat")
	conn := s.attach("box", "c", 0)
	s.must(conn.WriteFrame(channel.FrameStdin, []byte("word")))
	s.must(s.Freeze(t.Context(), Freeze{ID: "box"}))
	if !s.get("box").Frozen {
		t.Error("it is not frozen")
	}
	s.must(s.Thaw(t.Context(), Launch{ID: "box"}))
	s.must(conn.WriteFrame(channel.FrameStdin, nil))
	if o := s.collect(conn); o.out.String() != "word" {
		t.Errorf("%q", &o.out)
	}
	s.must(s.Kill(t.Context(), "box"))
	if exit, err := s.Wait(t.Context(), "box"); err != nil || exit.Signal != 9 {
		t.Errorf("%+v, %v", exit, err)
	}
	s.must(s.Forget(t.Context(), "box"))
}

// askRaw sends a request as it is written.
func (c *Client) askRaw(ctx context.Context, text string) (Response, error) {
	l, err := c.connectKeeper(ctx)
	if err != nil {
		return Response{}, err
	}
	defer l.closeLink()
	if err := l.WriteFrame(channel.FrameOpen, []byte(text)); err != nil {
		return Response{}, err
	}
	return l.receiveResponse()
}

// TestHello: a keeper tells what it is, and one that follows it is asked anew.
func TestHello(t *testing.T) {
	s := newStage(t, func(c *Config) { c.Release = "one" })
	hello, err := s.Hello(t.Context())
	if err != nil || hello.Protocol != Protocol || hello.Release != "one" || len(hello.Lacks()) > 0 || hello.Self.Pid != s.keeper.Process.Pid || !hello.Self.Is() {
		t.Fatalf("%+v, %v", hello, err)
	}
	if _, err := s.askRaw(t.Context(), `{"verb":"ping","future":1}`); !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), "unknown field") {
		t.Errorf("a field of the future: %v", err)
	}
	if _, err := s.askRaw(t.Context(), `{"verb":"future"}`); !errors.Is(err, fault.ErrNotFound) && !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a verb of the future: %v", err)
	}
	_ = s.Track(t.Context(), "none", []process.ID{{Pid: 2, Start: 3}}) // has it ask
	if s.met.hello.Release != "one" || !s.met.countsAlike() {
		t.Errorf("met: %+v", s.met)
	}
	s.must(s.Shutdown(t.Context()))
	_ = s.keeper.Wait()
	s.start(Config{Socket: s.socket, Uplink: s.uplink, Release: "two"})
	_ = s.Track(t.Context(), "none", []process.ID{{Pid: 2, Start: 3}})
	if s.met.hello.Release != "two" || !s.met.countsAlike() {
		t.Errorf("met: %+v", s.met)
	}
}
