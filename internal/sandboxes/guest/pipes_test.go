package guest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestAChannelOfTwoPipes: what is written comes out, an end of the other side is one, and a
// Close ends a Read that waits; what is no pipe is no channel.
func TestAChannelOfTwoPipes(t *testing.T) {
	toGuest, fromHost, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	toHost, fromGuest, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	take := func(f *os.File) *os.File {
		t.Helper()
		own, err := takePipe(int(f.Fd()), "a test's")
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil { // the copy is its own
			t.Fatal(err)
		}
		return own
	}
	guest := pipes{in: take(toGuest), out: take(fromGuest)}
	if _, err := fromHost.WriteString("question"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 8)
	if _, err := io.ReadFull(guest, got); err != nil || string(got) != "question" {
		t.Errorf("the guest reads %q (%v)", got, err)
	}
	if _, err := guest.Write([]byte("answers.")); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(toHost, got); err != nil || string(got) != "answers." {
		t.Errorf("the host reads %q (%v)", got, err)
	}
	waited := make(chan error, 1)
	go func() {
		_, err := guest.Read(got)
		waited <- err
	}()
	if err := guest.Close(); err != nil {
		t.Error(err)
	}
	if err := <-waited; !errors.Is(err, os.ErrClosed) {
		t.Errorf("a Read that waited ended with %v", err)
	}
	if n, err := toHost.Read(got); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("after the guest's end the host reads %d bytes (%v)", n, err)
	}
	plain, err := os.Create(filepath.Join(t.TempDir(), "plain"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := takePipe(int(plain.Fd()), "stdin"); err == nil {
		t.Error("a file is taken for a channel")
	}
}
