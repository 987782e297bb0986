package sandbox

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// contents asks a guest what directories consist of; it implements inventory.Contents.
func (m *Manager) contents(ctx context.Context, id string, paths []string) (map[string][]string, error) {
	ctx, cancel := context.WithTimeout(ctx, inventoryPatience)
	defer cancel()
	digests := map[string][]string{}
	for some := range slices.Chunk(paths, channel.MaxContents) {
		reply, err := m.cfg.Keeper.Call(ctx, id, channel.Call{Kind: channel.CallContents, Contents: &channel.ContentsAsk{Paths: some}})
		if err != nil {
			return nil, err
		}
		var answer channel.ContentsReply
		if !reply.OK || json.Unmarshal(reply.Body, &answer) != nil || len(answer.Whole) != len(some) || len(answer.Own) != len(some) {
			return nil, fault.New(fault.ErrUnavailable, "the guest does not say what directories consist of: %s", reply.Error)
		}
		for i, path := range some {
			digests[path] = []string{answer.Whole[i], answer.Own[i]}
		}
	}
	return digests, nil
}
