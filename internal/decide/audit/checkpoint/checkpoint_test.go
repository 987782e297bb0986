package checkpoint

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/note"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func newKey(tb testing.TB) (Key, Keyring) {
	tb.Helper()
	k, err := Generate("")
	if err != nil {
		tb.Fatal(err)
	}
	ring, err := NewKeyring("# a comment\n\n" + k.Public() + "\n")
	if err != nil {
		tb.Fatal(err)
	}
	return k, ring
}

func TestSignedAndOpened(t *testing.T) {
	k, ring := newKey(t)
	var file []byte
	var want []Checkpoint
	for size := range int64(4) {
		c := Checkpoint{Origin: k.Name(), Size: size, Root: [32]byte{byte(size)}, Time: time.Unix(size, 5).UTC()}
		msg, err := c.Sign(k)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, c)
		file = append(append(file, msg...), '\n')
	}
	notes, rest := Split(append(file, "torn"...))
	if string(rest) != "torn" || len(notes) != len(want) {
		t.Fatalf("%d notes, and the rest is %q", len(notes), rest)
	}
	for i, n := range notes {
		got, err := ring.Open(n)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Error(diff)
		}
	}
	if notes, rest := Split(file[:len(notes[0])]); len(notes) != 0 || len(rest) == 0 {
		t.Error("a note whose last byte is torn off is a whole one")
	}
}

func TestEveryChangedByteIsFound(t *testing.T) {
	k, ring := newKey(t)
	msg, err := Checkpoint{Origin: k.Name(), Size: 7, Time: time.Unix(1, 0)}.Sign(k)
	if err != nil {
		t.Fatal(err)
	}
	was, err := ring.Open(msg)
	if err != nil {
		t.Fatal(err)
	}
	for i := range msg {
		changed := bytes.Clone(msg)
		changed[i] ^= 2
		if c, err := ring.Open(changed); err == nil && c != was {
			t.Errorf("a change of byte %d was taken for %+v", i, c)
		}
	}
	stranger, others := newKey(t)
	if _, err := others.Open(msg); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("a note of another key: %v", err)
	}
	if strings.Contains(string(stranger.Secret()), stranger.Public()) {
		t.Error("the secret is the public key")
	}
}

func TestWhatIsNoCheckpoint(t *testing.T) {
	k, ring := newKey(t)
	for _, text := range []string{"a\n", "a\n1\n", "a\n-1\nAAAA\n", "a\n01\n" + strings.Repeat("A", 43) + "=\n", "a\n1\nAAAA\n", "a\n1\n" + strings.Repeat("A", 43) + "=\ntime yesterday\n"} {
		msg, err := note.Sign(&note.Note{Text: text}, k.signer)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := ring.Open(msg); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%q was taken for %+v (%v)", text, c, err)
		}
	}
}

func TestRotationsAreLearntBothWays(t *testing.T) {
	first, ring := newKey(t)
	second, err := Generate(first.Name())
	if err != nil {
		t.Fatal(err)
	}
	both, err := Checkpoint{Origin: first.Name(), Size: 3, OldKey: first.Public(), NewKey: second.Public()}.Sign(first, second)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := Checkpoint{Origin: first.Name(), Size: 3, OldKey: first.Public(), NewKey: second.Public()}.Sign(first)
	if err != nil {
		t.Fatal(err)
	}
	if ring.Learn(alone) {
		t.Error("a rotation that the new key did not sign was believed")
	}
	if !ring.Learn(both) || ring.Learn(both) || len(ring.Keys()) != 2 {
		t.Errorf("the keys are %q", ring.Keys())
	}
	later, err := NewKeyring(second.Public())
	if err != nil {
		t.Fatal(err)
	}
	if !later.Learn(both) || len(later.Keys()) != 2 {
		t.Errorf("from the new key the keys are %q", later.Keys())
	}
}

func FuzzOpen(f *testing.F) {
	k, ring := newKey(f)
	msg, err := Checkpoint{Origin: k.Name(), Size: 7, Time: time.Unix(1, 0)}.Sign(k)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(msg)
	f.Add([]byte("a\n\n— b\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		notes, rest := Split(text)
		length := len(rest)
		for _, n := range notes {
			length += len(n) + 1
			if c, err := ring.Open(n); err == nil && c.Origin != k.Name() {
				t.Errorf("%+v is not what was signed", c)
			}
		}
		if length != len(text) {
			t.Errorf("of %d bytes %d are in notes or left over", len(text), length)
		}
	})
}
