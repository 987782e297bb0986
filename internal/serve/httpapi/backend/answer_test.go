package backend_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// patient is a client that takes a second for each write, as long as the deadline of its connection lets it.
type patient struct {
	*httptest.ResponseRecorder

	takes    time.Duration
	deadline time.Time
	set      int
}

// SetWriteDeadline serves http.ResponseController.
func (p *patient) SetWriteDeadline(at time.Time) error {
	p.deadline = at
	p.set++
	return nil
}

// Write implements io.Writer.
func (p *patient) Write(b []byte) (int, error) {
	if p.deadline.IsZero() {
		return 0, errors.New("a write without a deadline")
	}
	time.Sleep(p.takes) // of a synctest's clock
	if !time.Now().Before(p.deadline) {
		return 0, context.DeadlineExceeded
	}
	return p.ResponseRecorder.Write(b)
}

// TestAnswersHaveADeadline: a client gets a while for its answer, and more for a longer one; who takes next
// to nothing is cut off. Then the connection has no deadline any more.
func TestAnswersHaveADeadline(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("<", 1<<20)
	list := make([]string, 2_000)
	for i := range list {
		list[i] = long[:1<<10]
	}
	for name, write := range map[string]func(http.ResponseWriter) error{
		"a value": func(w http.ResponseWriter) error { return backend.WriteJSON(t.Context(), w, http.StatusOK, list) },
		"pieces": func(w http.ResponseWriter) error {
			w = backend.Prompt(w)
			for range 3 {
				if _, err := w.Write([]byte(long)); err != nil {
					return backend.ErrAnswered
				}
				if err := http.NewResponseController(w).Flush(); err != nil {
					return err
				}
				time.Sleep(time.Hour) // of a synctest's clock: there is nothing to tell
			}
			return nil
		},
		"bytes": func(w http.ResponseWriter) error { return backend.WriteBytes(w, []byte(strings.Repeat(long, 16))) },
	} {
		synctest.Test(t, func(t *testing.T) {
			for takes, ends := range map[time.Duration]error{time.Millisecond: nil, time.Hour: backend.ErrAnswered} {
				client := &patient{ResponseRecorder: httptest.NewRecorder(), takes: takes}
				if err := write(client); !errors.Is(err, ends) {
					t.Errorf("%s, %s for each write: %v, and not %v", name, takes, err, ends)
				}
				if client.set < 2 || !client.deadline.IsZero() {
					t.Errorf("%s: %d deadlines, the last %s", name, client.set, client.deadline)
				}
			}
		})
	}
}

// TestAnswersTakeRoom: what an answer holds is counted before any of it is written, with what its request
// holds already; who has no room is told so, and a small answer is always there.
func TestAnswersTakeRoom(t *testing.T) {
	t.Parallel()
	room := backend.NewRoom()
	ask := func(v any, holds int) (int, error) {
		ctx, leave := room.Enter(t.Context(), "ann")
		defer leave()
		if err := backend.Take(ctx, holds); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		err := backend.WriteJSON(ctx, w, http.StatusCreated, v)
		return w.Body.Len(), err
	}
	half := map[string]string{"x": strings.Repeat("x", backend.RoomEach/2)}
	if _, err := ask(half, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(half, backend.RoomEach/2+1<<10); err != nil {
		t.Errorf("a request that holds as much already: %v", err)
	}
	if n, err := ask([]any{half, half}, 0); !errors.Is(err, fault.ErrExhausted) || n > 0 {
		t.Errorf("an answer that is larger than the room: %d bytes, %v", n, err)
	}
	ctx, leave := room.Enter(t.Context(), "ann")
	defer leave()
	if err := backend.Take(ctx, backend.RoomEach); err != nil {
		t.Fatal(err)
	}
	if n, err := ask(half, 0); !errors.Is(err, fault.ErrExhausted) || n > 0 {
		t.Errorf("an answer while another request holds all: %d bytes, %v", n, err)
	}
	if n, err := ask("small", 0); err != nil || n == 0 {
		t.Errorf("a small answer: %d bytes, %v", n, err)
	}
}

type sized struct {
	Text  string `json:"text"`
	Bytes []byte `json:"bytes"`
	inner
	Behind *sized            `json:"behind"`
	Of     map[string]string `json:"of"`
	Any    any               `json:"any"`
	At     time.Time         `json:"at"`
}

type inner struct {
	List []string `json:"list"`
}

// TestSizeOf: each part of a value counts, wherever it is.
func TestSizeOf(t *testing.T) {
	t.Parallel()
	const many = 10_000
	text := strings.Repeat("x", many)
	empty := backend.SizeOf(sized{At: time.Now()})
	if empty > 1<<10 {
		t.Errorf("an empty value takes %d", empty)
	}
	for name, v := range map[string]any{
		"text": sized{Text: text}, "bytes": sized{Bytes: []byte(text)}, "embedded": sized{inner: inner{List: []string{text}}}, "empty texts": sized{inner: inner{List: make([]string, many/16)}},
		"behind": sized{Behind: &sized{Text: text}}, "key": sized{Of: map[string]string{text: ""}}, "value": sized{Of: map[string]string{"": text}}, "any": sized{Any: []any{text}}, "raw": sized{Any: json.RawMessage(text)},
	} {
		if size := backend.SizeOf(v); size < empty+many || size > empty+2*many {
			t.Errorf("%s: %d, of which %d are there without it", name, size, empty)
		}
	}
	circle := &sized{}
	circle.Behind = circle
	if backend.SizeOf(circle) == 0 || backend.SizeOf(nil) != 0 {
		t.Error("what leads to itself, or nothing")
	}
}

// TestAnswersAreAsEncodingJSONHasThem: markup is escaped, objects are in order, nothing that is not there
// becomes something.
func TestAnswersAreAsEncodingJSONHasThem(t *testing.T) {
	t.Parallel()
	for _, v := range []any{
		map[string]any{"b": 1, "a": []string(nil), "<&>": "\u2028é", "raw": json.RawMessage(`{"x": 1}`)}, sized{Text: "é", Bytes: []byte{1}, At: time.Unix(1, 2).UTC()}, []int{}, nil, 1e21,
	} {
		w := httptest.NewRecorder()
		if err := backend.WriteJSON(t.Context(), w, http.StatusOK, v); err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if w.Body.String() != string(want)+"\n" {
			t.Errorf("%s, and not %s", w.Body, want)
		}
	}
}

// TestAnAnswerThatWasPromisedIsGiven: the room is taken before the deed, which is refused if there is none; and an
// answer that turns out larger is given.
func TestAnAnswerThatWasPromisedIsGiven(t *testing.T) {
	t.Parallel()
	room := backend.NewRoom()
	const half = backend.RoomEach / 2
	ctx, leave := room.Enter(t.Context(), "ann")
	defer leave()
	if err := backend.Promise(ctx, 8, strings.Repeat("x", half/8)); err != nil {
		t.Fatal(err)
	}
	if err := backend.Promise(ctx, 8, strings.Repeat("x", half/8)); err != nil {
		t.Errorf("the same room is taken twice: %v", err)
	}
	other, leaveOther := room.Enter(t.Context(), "ann")
	defer leaveOther()
	if err := backend.Promise(other, 9, strings.Repeat("x", half/8)); !errors.Is(err, fault.ErrExhausted) {
		t.Errorf("more than there is was promised: %v", err)
	}
	if err := backend.WriteJSON(other, httptest.NewRecorder(), http.StatusOK, strings.Repeat("x", half+1)); !errors.Is(err, fault.ErrExhausted) {
		t.Fatalf("the control, which was not promised: %v", err)
	}
	if err := backend.Promise(other, 1, "x"); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	if err := backend.WriteJSON(other, w, http.StatusCreated, strings.Repeat("x", half+1)); err != nil || w.Code != http.StatusCreated || w.Body.Len() < half {
		t.Errorf("what was promised is answered with %d and %d bytes (%v)", w.Code, w.Body.Len(), err)
	}
}

// TestAListIsAnsweredOfAnyLength, as JSON, in the room of its largest element; without that it is refused before
// anything is written.
func TestAListIsAnsweredOfAnyLength(t *testing.T) {
	t.Parallel()
	ctx, leave := backend.NewRoom().Enter(t.Context(), "ann")
	defer leave()
	repeated := func(n, length int) func(yield func(string) bool) {
		one := strings.Repeat("x", length)
		return func(yield func(string) bool) {
			for range n {
				if !yield(one) {
					return
				}
			}
		}
	}
	for n, length := range map[int]int{0: 1, 1: 1, 2: 1, 40: 1 << 20} {
		w := httptest.NewRecorder()
		var got []string
		err := backend.WriteList(ctx, w, http.StatusOK, repeated(n, length))
		if err == nil {
			err = json.Unmarshal(w.Body.Bytes(), &got)
		}
		if err != nil || got == nil || len(got) != n || !strings.HasSuffix(w.Body.String(), "]\n") {
			t.Errorf("a list of %d is answered as one of %d (%v)", n, len(got), err)
		}
	}
	w := httptest.NewRecorder()
	if err := backend.WriteList(ctx, w, http.StatusOK, repeated(1, backend.RoomEach+1)); !errors.Is(err, fault.ErrExhausted) || w.Body.Len() > 0 {
		t.Errorf("an element without room: %v, and %d bytes", err, w.Body.Len())
	}
}
