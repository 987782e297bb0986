package baseline

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// Bounds of what a guest may say about its disk.
const (
	askTimeout  = 60 * time.Second // for all pages of it
	maxPackages = 40_000           // with the projects that are written there
	maxBytes    = 24 << 20         // of JSON
)

// guestDisks are asked what is on their disks. Their answer is a claim.
type guestDisks struct{ keeper *keeper.Client }

// packages asks a guest for its packages, page by page.
func (g guestDisks) packages(ctx context.Context, id string, ask channel.InventoryAsk) (channel.Inventory, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return fetchPages(ask, func(ask channel.InventoryAsk) ([]byte, error) {
		reply, err := g.keeper.Call(ctx, id, channel.Call{Kind: channel.CallInventory, Inventory: &ask})
		return reply.Body, err
	})
}

// fetchPages puts the pages together. A guest that does not go on, or has
// more than an agent gives, is refused whole.
func fetchPages(ask channel.InventoryAsk, call func(channel.InventoryAsk) ([]byte, error)) (channel.Inventory, error) {
	var all channel.Inventory
	size := 0
	for {
		body, err := call(ask)
		if err != nil {
			return channel.Inventory{}, err
		}
		var page channel.Inventory
		if err := json.Unmarshal(body, &page); err != nil {
			return channel.Inventory{}, fault.Wrap(fault.ErrInvalid, err, "the guest's list of packages can't be read")
		}
		all.Packages = append(all.Packages, page.Packages...)
		all.Truncated = all.Truncated || page.Truncated
		for _, bound := range page.Bounds {
			told := func(one channel.InventoryBound) bool { return one.String() == bound.String() }
			if !slices.ContainsFunc(all.Bounds, told) { // all that are made up are one
				all.Bounds = append(all.Bounds, bound)
			}
		}
		all.Closed = append(all.Closed, page.Closed...)
		if size += len(body); size > maxBytes || len(all.Packages) > maxPackages {
			return channel.Inventory{}, fault.Invalid("the guest's list of packages has no end")
		}
		if page.Next == 0 {
			return all, nil
		}
		if page.Next != len(all.Packages) || page.Next <= ask.From || ask.Take != 0 && page.Take != ask.Take {
			return channel.Inventory{}, fault.Invalid("the pages of the guest's list of packages don't fit together")
		}
		ask.Take, ask.From = page.Take, page.Next
	}
}

// contents asks a guest what directories consist of; it implements Contents of what is recorded.
func (g guestDisks) contents(ctx context.Context, id string, paths []string) (map[string][]string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	digests := map[string][]string{}
	for some := range slices.Chunk(paths, channel.MaxContents) {
		reply, err := g.keeper.Call(ctx, id, channel.Call{Kind: channel.CallContents, Contents: &channel.ContentsAsk{Paths: some}})
		if err != nil {
			return nil, err
		}
		var answer channel.ContentsReply
		if json.Unmarshal(reply.Body, &answer) != nil || len(answer.Whole) != len(some) || len(answer.Own) != len(some) {
			return nil, fault.New(fault.ErrUnavailable, "the guest does not say what directories consist of")
		}
		for i, path := range some {
			digests[path] = []string{answer.Whole[i], answer.Own[i]}
		}
	}
	return digests, nil
}
