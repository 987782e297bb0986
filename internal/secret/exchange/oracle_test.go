package exchange

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// lender is a Keeper of one value, which a request gets if the credentials say so.
type lender struct {
	value string

	mu   sync.Mutex // guards it
	told []Leak
}

func (l *lender) Secrets(_ context.Context, _ Request, uses []Use) (Given, error) {
	given := Given{Others: map[string][]string{"one": {l.value}}}
	if len(uses) > 0 {
		given.Secrets = map[string]string{"one": l.value}
	}
	return given, nil
}

func (l *lender) Leaked(_ context.Context, _ Request, leak Leak) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, leak)
	return "it is told"
}

func (*lender) Declined(context.Context, []string) {}

// form is how an answer is written.
type form struct {
	kind     string              // Content-Type
	upgraded bool                // it is a connection
	part     func(string) string // a part that ends within something
	whole    func(string) string // the end of a message; nil: there is none
}

func envelope(text string, whole bool) string {
	size := len(text)
	if !whole {
		size += 1_000
	}
	return string(binary.BigEndian.AppendUint32([]byte{0}, uint32(size))) + text
}

func forms() map[string]form {
	same := func(text string) string { return text }
	return map[string]form{
		"text":   {kind: "text/plain", part: same},
		"events": {kind: "text/event-stream; charset=utf-8", part: func(s string) string { return "data: " + s }, whole: func(s string) string { return "data: " + s + "\n\n" }},
		"lines":  {kind: "application/x-ndjson", part: same, whole: func(s string) string { return s + "\n" }},
		"gRPC": {kind: "application/grpc+proto", part: func(s string) string { return envelope(s, false) }, whole: func(s string) string {
			return envelope(s, true)
		}},
		"Connect":   {kind: "application/connect+json", part: func(s string) string { return envelope(s, false) }, whole: func(s string) string { return envelope(s, true) }},
		"a message": {upgraded: true, part: func(s string) string { return string(frame(1, false, []byte(s))) }, whole: func(s string) string { return string(frame(1, true, []byte(s))) }},
	}
}

// seen is what somebody sees of an answer: so many bytes, so long after its begin.
type seen struct {
	at    time.Duration
	bytes int
}

// saying is what a host says, after a pause.
type saying struct {
	pause time.Duration
	says  string
}

// ask sends a request by an exchange, and gives the answer to it, which is what from gives.
func ask(t *testing.T, x *Exchange, f form, from io.ReadCloser) (*http.Response, error) {
	t.Helper()
	r := post(t, "/", "", "")
	if err := x.Outgoing(r); err != nil {
		return nil, err
	}
	a := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {f.kind}}, Request: r, Body: from, ProtoMajor: 1, ContentLength: -1, TransferEncoding: []string{"chunked"}}
	if f.upgraded {
		a.StatusCode, a.Body = http.StatusSwitchingProtocols, struct {
			io.ReadCloser
			io.Writer
		}{from, io.Discard}
	}
	return a, x.Incoming(a)
}

// watch has a host answer, which ends with how, and gives what comes of that, and when. It runs in a bubble.
func watch(t *testing.T, x *Exchange, f form, steps []saying, how error) (text string, all []seen, err error) {
	t.Helper()
	in, out := io.Pipe()
	a, err := ask(t, x, f, in)
	if err != nil {
		return "", nil, err
	}
	begin := time.Now()
	var host sync.WaitGroup
	host.Go(func() {
		for _, one := range steps {
			time.Sleep(one.pause)
			_, _ = io.WriteString(out, one.says)
		}
		_ = out.CloseWithError(how)
	})
	defer host.Wait()
	defer a.Body.Close()
	for b := make([]byte, 32<<10); ; {
		n, err := a.Body.Read(b)
		if n > 0 {
			text, all = text+string(b[:n]), append(all, seen{time.Since(begin), n})
		}
		if err != nil {
			return text, all, err
		}
	}
}

const (
	guessed = "sk-Zq81xKf0TwLm33"
	another = "sk-fakefakefakefa"
)

// toOther has requests get no secret, and toItsHost the one.
func toOther(value string) *Exchange {
	return New(nil, map[string]string{"one": another}, &lender{value: value}).Seek()
}

func toItsHost(l *lender) *Exchange { return New([]Credential{setting()}, nil, l) }

// TestWhatWaitsTellsNothingOfASecret: in each form of an answer, and at each place in it where it stops for now, what
// comes of a guess, and when, is the same whether it is the beginning of the run's secret or not, and whether the run
// has one. Otherwise whoever has words of its own sent back finds it out letter by letter.
func TestWhatWaitsTellsNothingOfASecret(t *testing.T) {
	writings := map[string]func(string) string{
		"as it is": func(s string) string { return "." + s },
		"escaped":  func(s string) string { return ".%73" + s[1:] },
		"base64": func(s string) string {
			return base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat(".", 21) + s))
		},
	}
	for name, f := range forms() {
		for place, write := range map[string]func(string) string{"in a part": f.part, "at an end": f.whole} {
			if write == nil {
				continue
			}
			for writing, written := range writings {
				for _, n := range []int{4, 6, 9, len(guessed) - 1} {
					right := guessed[:n]
					wrong := right[:n-1] + "!"
					var first []seen
					for i, c := range []struct{ guess, value string }{{wrong, ""}, {wrong, guessed}, {right, ""}, {right, guessed}} {
						synctest.Test(t, func(t *testing.T) {
							says := write(written(c.guess))
							steps := []saying{{0, write("hello, ")}, {time.Second, says}, {time.Second, f.part("!")}}
							text, all, _ := watch(t, toOther(c.value), f, steps, io.EOF)
							if want := steps[0].says + says + steps[2].says; text != want {
								t.Fatalf("%s, %s: %q came as %q", name, place, want, text)
							}
							if i == 0 {
								first = all
							} else if !slices.Equal(all, first) {
								t.Errorf("%s, %s, %s: of %q, where the secret is %q, comes %v, and of another guess %v", name, place, writing, c.guess, c.value, all, first)
							}
							if place == "at an end" && !slices.Contains(all, seen{time.Second, len(says)}) {
								t.Errorf("%s, %s: a whole message waits: %v", name, place, all)
							}
						})
					}
				}
			}
		}
	}
}

// TestASecretInPiecesIsMaskedWhole: a value comes in two pieces, parted at each of its bytes, of which the second
// comes at once or before the patience is over. No letter of it arrives, wherever it is parted.
func TestASecretInPiecesIsMaskedWhole(t *testing.T) {
	pem := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n", 3) + "-----END PRIVATE KEY-----"
	plain := func(s string) string { return s }
	for name, c := range map[string]struct {
		value string
		write func(string) string
	}{
		"plain":             {guessed, plain},
		"with blanks":       {"correct horse battery", plain},
		"with quotes":       {`pa"ss'wo>rd, 123`, plain},
		"of lines":          {pem, plain},
		"in base64":         {guessed, func(s string) string { return base64.StdEncoding.EncodeToString([]byte("user:" + s)) }},
		"base64 over lines": {pem, func(s string) string { return inLines(base64.StdEncoding.EncodeToString([]byte(s)), 40) }},
		"with braces": {guessed, func(s string) string {
			out := ""
			for _, c := range s {
				out += fmt.Sprintf(`\u{%x}`, c)
			}
			return out
		}},
	} {
		written := c.write(c.value)
		text := `{"key": "` + written + `"}`
		want := seek(c.value).masked(text)
		if !strings.Contains(want, "xxxxxxxxxxxx") {
			t.Fatal(want)
		}
		for _, f := range []form{forms()["text"], forms()["a message"]} {
			for at := range len(written) + 1 {
				for _, pause := range []time.Duration{0, usualPatience * (partsOfPatience - 1) / partsOfPatience} {
					synctest.Test(t, func(t *testing.T) {
						cut := strings.Index(text, written) + at
						got, _, _ := watch(t, toOther(c.value), f, []saying{{0, f.part(text[:cut])}, {pause, f.part(text[cut:])}}, io.EOF)
						if f.upgraded {
							got = payloads(t, got)
						}
						if got != want {
							t.Errorf("%s, parted at %d, %v: %q", name, at, pause, got)
						}
					})
				}
			}
		}
	}
}

func inLines(text string, size int) (lines string) {
	for part := range slices.Chunk([]byte(text), size) {
		lines += string(part) + "\n"
	}
	return lines
}

// payloads are what short frames carry that have no end of a message.
func payloads(t *testing.T, b string) (text string) {
	t.Helper()
	for b != "" {
		head, n := 2, int(b[1])
		if n == 126 {
			head, n = 4, int(binary.BigEndian.Uint16([]byte(b[2:])))
		}
		text, b = text+b[head:head+n], b[head+n:]
	}
	return text
}

// TestAnAnswerThatStopsWithinASecret is handed on up to there where its host did not get the secret. Where it did,
// it ends, and that is an alarm. So somebody who guesses there has to give an alarm for each letter, and after
// some of these the run gets no secret any more. The controls: what is no beginning arrives, on time and untold.
func TestAnAnswerThatStopsWithinASecret(t *testing.T) {
	stops := func(text string) []saying { return []saying{{0, ""}, {0, "." + text}, {time.Hour, "!"}} }
	text := forms()["text"]
	synctest.Test(t, func(t *testing.T) {
		if got, all, err := watch(t, toOther(guessed), text, stops(guessed[:9]), io.EOF); !errors.Is(err, io.EOF) || got != "."+guessed[:9]+"!" || all[0] != (seen{usualPatience, 10}) {
			t.Errorf("at another host: %q, %v, %v", got, all, err)
		}
	})
	l := &lender{value: guessed}
	x := toItsHost(l)
	miss := func(t *testing.T) {
		t.Helper()
		if got, all, err := watch(t, x, text, stops("sk-Zz"), io.EOF); !errors.Is(err, io.EOF) || got != ".sk-Zz!" || all[0] != (seen{secretPatience, 6}) {
			t.Errorf("what is no beginning: %q, %v, %v", got, all, err)
		}
	}
	for hits, end := range []struct {
		f     form
		steps []saying
		how   error
	}{
		{text, stops(guessed[:4]), io.EOF},
		{forms()["a message"], []saying{{0, forms()["a message"].part("." + guessed[:9])}, {time.Hour, ""}}, io.EOF},
		{text, []saying{{0, "."}, {0, guessed[:len(guessed)-1]}}, io.ErrUnexpectedEOF},
	} {
		synctest.Test(t, func(t *testing.T) {
			miss(t)
			got, _, err := watch(t, x, end.f, end.steps, end.how)
			if refused, is := errors.AsType[*Refused](err); !is || !refused.Leak || refused.Sentence != "it is told" || strings.Contains(got, guessed[:4]) {
				t.Errorf("%d: %q, %v", hits, got, err)
			}
			if want := (Leak{Secret: "one", Where: "answer", Answer: true}); len(l.told) != hits+1 || l.told[hits] != want {
				t.Errorf("%d: %v is told", hits, l.told)
			}
		})
	}
	if _, err := ask(t, x, text, http.NoBody); err == nil || err.Error() != tooManyStops {
		t.Errorf("after that a request is sent: %v", err)
	}
	if _, err := ask(t, toItsHost(&lender{value: guessed}), text, http.NoBody); err != nil {
		t.Errorf("the control, another run: %v", err)
	}
}

// TestAfterTooManyStopsNobodyLearnsAnyMore: answers that were under way already end where they stop, whether that
// is within the secret or not.
func TestAfterTooManyStopsNobodyLearnsAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lender{value: guessed}
		x := toItsHost(l)
		var all sync.WaitGroup
		var mu sync.Mutex
		ends := map[string]int{}
		for i := range 10 {
			guess := []string{"sk-Zz", guessed[:5]}[i/maxStops%2] // the latter three times among the first ones
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				_, _, err := watch(t, x, forms()["text"], []saying{{0, guess}, {time.Hour, "!"}}, io.EOF)
				mu.Lock()
				defer mu.Unlock()
				ends[guess+": "+err.Error()]++
			})
		}
		all.Wait()
		want := map[string]int{"sk-Zz: EOF": 3, guessed[:5] + ": it is told": 3, "sk-Zz: " + tooManyStops: 3, guessed[:5] + ": " + tooManyStops: 1}
		if fmt.Sprint(ends) != fmt.Sprint(want) || len(l.told) != maxStops {
			t.Errorf("%v, and %d are told", ends, len(l.told))
		}
	})
}

// TestAHeldAnswerIsClosed while a read of it is under way: nothing is left of that.
func TestAHeldAnswerIsClosed(t *testing.T) {
	for name, f := range forms() {
		synctest.Test(t, func(t *testing.T) {
			in, out := io.Pipe()
			a, err := ask(t, toOther(guessed), f, in)
			if err != nil {
				t.Fatal(err)
			}
			says := f.part("hel")
			go func() { _, _ = io.WriteString(out, says) }()
			b := make([]byte, 100)
			if _, err := io.ReadFull(a.Body, b[:len(says)]); err != nil || string(b[:len(says)]) != says {
				t.Errorf("%s: %q, %v", name, b, err)
			}
			ended := make(chan error)
			go func() {
				_, err := a.Body.Read(b)
				ended <- err
			}()
			synctest.Wait()
			if err := a.Body.Close(); err != nil {
				t.Error(err)
			}
			if err := <-ended; !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("%s: %v", name, err)
			}
		}) // which waits for all goroutines
	}
}

// TestHeldBytesDoNotStandInTheWay: a host that says something and goes on once it has an answer to that has it, and
// words that come one by one come as they are said, each by the patience later at most.
func TestHeldBytesDoNotStandInTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		a, err := ask(t, toOther(guessed), forms()["text"], in)
		if err != nil {
			t.Fatal(err)
		}
		answered := make(chan bool)
		go func() {
			_, _ = io.WriteString(out, "ping")
			<-answered
			_, _ = io.WriteString(out, "pong")
			_ = out.Close()
		}()
		b := make([]byte, 100)
		if n, err := a.Body.Read(b); err != nil || string(b[:n]) != "ping" {
			t.Errorf("%q, %v", b[:n], err)
		}
		answered <- true
		if rest, err := io.ReadAll(a.Body); err != nil || string(rest) != "pong" {
			t.Errorf("%q, %v", rest, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		const each = 30 * time.Millisecond
		var words []saying
		for range 100 {
			words = append(words, saying{each, "word "})
		}
		_, all, _ := watch(t, toOther(guessed), forms()["text"], words, io.EOF)
		came := 0
		for _, one := range all {
			if came += one.bytes; one.at > each*time.Duration(came/len("word "))+usualPatience {
				t.Fatalf("%d bytes after %v", came, one.at)
			}
		}
	})
}

// TestATailEndsWherePiecesOfTextDo: of structured text nothing waits between its parts. No brace that ends an
// escape is such an end.
func TestATailEndsWherePiecesOfTextDo(t *testing.T) {
	for text, held := range map[string]int{
		"": 0, `{"a": "b"}`: 0, "[1, 2]\n": 0, `{"a": `: 2, `"a", `: 0, "data: {}\n\n": 0, "data: a\n\n": 9, "<a>b": 1, `"sk-`: 3,
		`"\u{73}`: 6, `"\N{LATIN SMALL LETTER S}`: 24, `"\u{73}\u{6b}`: 12, `"\n",{}`: 2, `"\n` + strings.Repeat(" ", maxEscape) + `", {}`: 0,
	} {
		for at := range len(text) + 1 {
			s := scan{needles: &needles{}}
			_, _ = s.take([]byte(text[:at]), false)
			if _, _ = s.take([]byte(text[at:]), false); s.held() != held {
				t.Errorf("%q, parted at %d: %d bytes wait, not %d", text, at, s.held(), held)
			}
		}
	}
}

// TestFramingFindsEnds of messages however they come.
func TestFramingFindsEnds(t *testing.T) {
	for kind, c := range map[string]struct {
		says string
		ends []int
	}{
		"text/event-stream":        {"data: a\n\ndata: b\r\n\r\ndata: c\r\rdata: d\n", []int{9, 20, 29}},
		"application/x-ndjson":     {"{}\n{}\n{", []int{3, 6}},
		"application/grpc":         {envelope("abc", true) + envelope("", true) + envelope("d", false), []int{8, 13}},
		"application/connect+json": {envelope("{}", true) + "\x00", []int{7}},
	} {
		f, ends := framingOf(http.Header{"Content-Type": {kind}}), []int(nil)
		for at := range c.says {
			if end := f.take([]byte(c.says[at : at+1])); end >= 0 {
				ends = append(ends, at+end)
			}
		}
		// Of CR LF CR LF the CR ends the message, and so does the LF that belongs to it.
		if kind == "text/event-stream" {
			ends = slices.DeleteFunc(ends, func(end int) bool { return end == 19 })
		}
		if !slices.Equal(ends, c.ends) {
			t.Errorf("%s: ends at %v, not %v", kind, ends, c.ends)
		}
		if end := framingOf(http.Header{"Content-Type": {kind}}).take([]byte(c.says)); end != c.ends[len(c.ends)-1] {
			t.Errorf("%s: the last end is %d", kind, end)
		}
	}
	for _, kind := range []string{"", "text/plain", "application/json", "application/grpc-web-text", "text/event-stream, text/plain"} {
		if f := framingOf(http.Header{"Content-Type": {kind}}); f != nil {
			t.Errorf("%q has ends: %T", kind, f)
		}
	}
}
