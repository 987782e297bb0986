package templatebuild

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

func hashOf(n int) string { return fmt.Sprintf("%064x", n) }

// send uploads a few bytes of a token's under a hash.
func send(t *testing.T, u *uploads, token string, n int) error {
	t.Helper()
	_, ticket, err := u.issueTicket(sandbox.Owner{Token: token}, hashOf(n))
	if err != nil {
		t.Fatal(err)
	}
	return u.receiveUpload(ticket, strings.NewReader("text"))
}

// TestUploadsWaitForNobodyElses: while a token's folder is looked through, which takes as long as the
// disk does, others' uploads and tickets go on.
func TestUploadsWaitForNobodyElses(t *testing.T) {
	t.Parallel()
	u, err := newUploads(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	u.lockFolder("tok-mallory")
	_, ticket, err := u.issueTicket(sandbox.Owner{Token: "tok-mallory"}, hashOf(1))
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan error, 1)
	go func() { waits <- u.receiveUpload(ticket, strings.NewReader("text")) }()
	if err := send(t, u, "tok-bob", 1); err != nil { // it would wait for ever
		t.Error(err)
	}
	if _, ok := u.holder(ticket); !ok {
		t.Error("a ticket that waits is gone")
	}
	u.unlockFolder("tok-mallory")
	if err := <-waits; err != nil {
		t.Error(err)
	}
}

// TestATokenKeepsSoManyUploads: however small they are. Old ones go for new ones, and the same one may
// come again.
func TestATokenKeepsSoManyUploads(t *testing.T) {
	t.Parallel()
	u, err := newUploads(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := send(t, u, "tok-mallory", 0); err != nil {
		t.Fatal(err)
	}
	for n := range maxUploads - 2 { // each that is sent waits for the disk
		if err := os.WriteFile(filepath.Join(u.folder("tok-mallory"), hashOf(n+1)), []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := send(t, u, "tok-mallory", maxUploads-1); err != nil {
		t.Errorf("the last that finds a place: %v", err)
	}
	if err := send(t, u, "tok-mallory", maxUploads); !errors.Is(err, fault.ErrExhausted) {
		t.Errorf("one more: %v", err)
	}
	if len(u.tickets) != 1 {
		t.Errorf("%d tickets are left: what found no place can't be sent again", len(u.tickets))
	}
	if err := send(t, u, "tok-mallory", 7); err != nil {
		t.Errorf("one of them again: %v", err)
	}
	if err := send(t, u, "tok-bob", maxUploads); err != nil {
		t.Errorf("another token's: %v", err)
	}
	old := time.Now().Add(-2 * fresh)
	if err := os.Chtimes(filepath.Join(u.folder("tok-mallory"), hashOf(3)), old, old); err != nil {
		t.Fatal(err)
	}
	if err := send(t, u, "tok-mallory", maxUploads); err != nil {
		t.Errorf("one more, where an old one may go: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(u.folder("tok-mallory"), hashOf(3))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old one is there: %v", err)
	}
}
