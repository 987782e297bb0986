package quota_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/quota"
)

// TestSetHost: a new bound counts for what comes, and takes nothing from who has it.
func TestSetHost(t *testing.T) {
	t.Parallel()
	b := quota.NewBook(quota.Host{})
	if err := b.Take("a", quota.Share{CPU: 2}, token.Quota{}); err != nil {
		t.Fatal(err)
	}
	b.SetHost(quota.Host{CPU: 1})
	refused(t, b.Take("b", quota.Share{CPU: 0.5}, token.Quota{}), "overcommit.cpu")
	if has, n := b.Promised(); has.CPU != 2 || n != 1 {
		t.Errorf("%v, %d", has, n)
	}
	b.SetHost(quota.Host{CPU: 3})
	if err := b.Take("b", quota.Share{CPU: 0.5}, token.Quota{}); err != nil {
		t.Error(err)
	}
}
