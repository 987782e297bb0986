package logbook

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/url"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/lru"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/memo"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// New opens the book of an upstream's log.
func New(cfg Config) (*Book, error) {
	u := cfg.Upstream
	name, _, _ := strings.Cut(u.Log, "+")
	if !fs.ValidPath(name) || name == "." || (&url.URL{Path: name}).EscapedPath() != name {
		return nil, fault.Invalid("the verifier of the upstream's transparency log begins with no name")
	}
	b := &Book{cfg: cfg, name: name, base: u.Index + relayed + name, client: cfg.Client}
	if u.LogURL != "" {
		b.base = strings.TrimSuffix(u.LogURL, "/")
		client, err := upstream.New(upstream.Config{Ecosystem: u.Ecosystem, Index: b.base + "/", Proxy: u.Proxy, CAPEM: u.CAPEM}, cfg.Options)
		if err != nil {
			return nil, err
		}
		b.client, b.own = client, true
	}
	if err := b.openLog(); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

func (b *Book) openLog() error {
	sum := sha256.Sum256([]byte(b.cfg.Upstream.Index + "\x00" + b.cfg.Upstream.Log))
	dir := "log/" + hex.EncodeToString(sum[:16])
	var errs [3]error
	b.config, errs[0] = b.cfg.Store.Shelf(dir+"/config", 0)
	b.cached, errs[1] = b.cfg.Store.Shelf(dir+"/cached", maxLogCached)
	disk, err := memo.NewDisk(b.cfg.Store, dir+"/attested", maxAttested, memo.JSON[loggedRelease, Attestation](), b.cfg.Log, "what the transparency log says of a release")
	errs[2] = err
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	b.attested = memo.NewFindings(lru.New[loggedRelease, Attestation](8<<20), disk, b.cfg.Flights, attestedSize)
	return b.loadSizes()
}
