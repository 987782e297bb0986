// Package pages has registries' index pages: it fetches, reads and keeps them, has
// the door judge them, and renders what the verdicts show.
package pages

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"log/slog"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/lru"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/coalesce"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/memo"
)

// Door gives verdicts on pages, and is told what their releases require.
type Door interface {
	Index(ctx context.Context, ask door.IndexAsk) (door.IndexAnswer, error)
	EdgesOfIndex(ctx context.Context, sandbox string, project pkgref.Ref, indexDigest string, reqs []door.IndexRequirement) error
}

// Config of Pages.
type Config struct {
	Store   *cache.Store
	Flights *coalesce.Group
	Door    Door
	Log     *slog.Logger     // for the operator
	Now     func() time.Time // when something that is seen now was first seen
	// Unconfirmed is told why a page that was served could not be had again meanwhile, with the guests to whom it was
	// served: they are not told.
	Unconfirmed func(s Source, project string, guests []string, err error)

	Fresh    time.Duration // for which a page is not asked for again
	Stale    time.Duration // for which it is served while it is asked for again
	Memory   int64         // bytes of pages kept in memory
	Rendered int64         // bytes of rendered pages, packed
	Required int64         // bytes of what the releases of pages require
}

// Pages are those of all upstreams. Make one with New.
type Pages struct {
	cfg      Config
	read     *lru.Cache[key, *Page]
	rendered *lru.Cache[renderKey, *Rendered]
	required *memo.Findings[requiredKey, *requirements]
	heavy    *fairqueue.Shares // for reading and rendering large pages
	zips     sync.Pool         // of *gzip.Writer, which are large
	tagKey   []byte            // of the ETags, so that none tells what it is made of
}

// New opens what is kept.
func New(cfg Config) (*Pages, error) {
	disk, err := memo.NewDisk(cfg.Store, "requirements", maxRequirements, requirementsFormat(), cfg.Log, "what the releases of a page require")
	if err != nil {
		return nil, err
	}
	tagKey := make([]byte, sha256.Size)
	_, _ = rand.Read(tagKey) // never fails
	required := lru.New[requiredKey, *requirements](cfg.Required)
	return &Pages{
		cfg:      cfg,
		read:     lru.New[key, *Page](cfg.Memory),
		rendered: lru.New[renderKey, *Rendered](cfg.Rendered),
		required: memo.NewFindings(required, disk, cfg.Flights, func(_ requiredKey, r *requirements) int64 { return r.sizeInMemory() }),
		heavy:    fairqueue.New(fairqueue.Limits{All: 2, Each: 2, Sure: 1, Most: 4}),
		tagKey:   tagKey,
	}, nil
}
