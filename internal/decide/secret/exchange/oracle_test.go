package exchange

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// lender is a Keeper of one value, which a request gets if the credentials say so, and perhaps of others.
type lender struct {
	value  string
	others map[string][]string

	mu   sync.Mutex // guards it
	told []Leak
}

func (l *lender) Secrets(_ context.Context, _ Request, uses []Use) (Given, error) {
	given := Given{Others: map[string][]string{"one": {l.value}}}
	maps.Copy(given.Others, l.others)
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
	open     bool                // its end is that of the connection
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
		"events": {kind: "text/event-stream; charset=utf-8", part: func(s string) string { return "data: " + s }, whole: func(s string) string { return "data: " + s + ".\n\n" }},
		"lines":  {kind: "application/x-ndjson", part: same, whole: func(s string) string { return "\"" + s + "\"\n" }},
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
	r := post(t, "/", f.kind, "")
	if err := x.Outgoing(r); err != nil {
		return nil, err
	}
	a := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {f.kind}}, Request: r, Body: from, ProtoMajor: 1, ContentLength: -1, TransferEncoding: []string{"chunked"}}
	if f.open {
		a.TransferEncoding = nil
	}
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

// TestASearchHoldsBackTheSameOfEachText: a search for a registry's credential tells as little of it by what it gives
// before the text's end.
func TestASearchHoldsBackTheSameOfEachText(t *testing.T) {
	for n := 3; n < len(guessed); n++ {
		right := "a, ." + guessed[:n]
		wrong := right[:len(right)-1] + "!"
		one, other := NewSought(guessed).Search(), NewSought(guessed).Search()
		if of, another := len(one.Take([]byte(right), false)), len(other.Take([]byte(wrong), false)); of != another || of != len("a,") {
			t.Errorf("of %q %d bytes are given, and of %q %d", right, of, wrong, another)
		}
	}
	if got := string(NewSought().Search().Take([]byte(guessed), false)); got != guessed {
		t.Errorf("without anything to look for %q is given", got)
	}
}
