package fleet

import "context"

// Status is the status of a fleet.
type Status struct {
	Workers []Worker       `json:"workers"`
	Pools   []PoolStatus   `json:"pools"`
	Caps    map[string]int `json:"caps"`
}

// PoolStatus is a part of an experiment whose cells have the same needs.
type PoolStatus struct {
	Run      string   `json:"run"`
	Title    string   `json:"title"`
	Dir      string   `json:"dir"` // the run directory, on the coordinator
	Provider string   `json:"provider"`
	Arms     []string `json:"arms"`
	Needs    Needs    `json:"needs"`
	Running  int      `json:"running"`
	Waiting  int      `json:"waiting"`
	// Left says that the experiment has no coordinator: the same command on its run directory
	// continues it.
	Left bool `json:"left,omitempty"`
}

// Status asks the hub for the status of the fleet.
func (h *Hub) Status(ctx context.Context) (*Status, error) {
	workers, err := h.Workers(ctx)
	if err != nil {
		return nil, err
	}
	caps, err := h.Caps(ctx)
	if err != nil {
		return nil, err
	}
	pools, err := h.pools(ctx)
	if err != nil {
		return nil, err
	}
	coordinated, err := h.coordinated(ctx)
	if err != nil {
		return nil, err
	}
	status := &Status{Workers: workers, Caps: caps}
	for i := range pools {
		p := &pools[i]
		one := PoolStatus{
			Run:      p.Run,
			Title:    p.Title,
			Dir:      p.Dir,
			Provider: p.Provider,
			Arms:     p.Arms,
			Needs:    p.Needs,
			Left:     !coordinated[p.Run],
		}
		one.Running, one.Waiting, _ = h.attempts(ctx, p) // the others are worth showing
		status.Pools = append(status.Pools, one)
	}
	return status, nil
}
