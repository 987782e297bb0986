package approvaltest_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
)

func TestMemory(t *testing.T) {
	approvaltest.TestStore(t, func(*testing.T) (approval.Store, func() approval.Store) { return approvaltest.NewMemory(), nil })
}
