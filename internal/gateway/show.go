package gateway

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/cofferdam-dev/cofferdam/internal/door"
)

// show has it recorded that these bytes, which describe what was asked for, go to the
// guest; it refuses them if that can't be.
func (g *Gateway) show(a *asked, kind, file string, body []byte) bool {
	sum := sha256.Sum256(body)
	err := g.door.Show(a.r.Context(), door.Showing{
		Sandbox: a.sandbox, Package: a.ref, Kind: kind, File: file, SourceURL: a.url, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(body)),
	})
	if err != nil {
		g.refuseUndecided(a, err)
	}
	return err == nil
}
