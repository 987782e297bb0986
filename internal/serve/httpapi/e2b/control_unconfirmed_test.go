package e2b_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestAnUnconfirmedRemoval is told as such, and the sandbox stays until it is confirmed.
func TestAnUnconfirmedRemoval(t *testing.T) {
	h := newHouse(t)
	id := h.create("").SandboxID
	h.life.Mute(fault.New(fault.ErrUnavailable, "the sandbox can't be taken away; it is tried again"))
	h.refused(503, "can't be taken away", h.ann, "DELETE /sandboxes/"+id, "")
	h.info(id)
	h.life.Mute(nil)
	h.must(204, nil, h.ann, "DELETE /sandboxes/"+id, "")
}
