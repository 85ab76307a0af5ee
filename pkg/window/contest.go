package window

import "time"

// Claim is a group whose rule is about a target: one with windows, or with a record.
type Claim struct {
	Name    string // namespace/name
	Created time.Time
	Holds   bool // it has a record of the target
}

// before says whether c is older than other, and so rules the target.
func (c Claim) before(other Claim) bool {
	if order := c.Created.Compare(other.Created); order != 0 {
		return order < 0
	}
	return c.Name < other.Name
}

// Contest is what keeps a group from its target. The zero Contest: nothing.
type Contest struct {
	Older  string // the oldest of the groups that are older; "": none
	Holder string // a younger group that has not let go of the target yet; "": none
}

// Contend returns what the claims on a target mean for the group with that name.
func Contend(name string, claims []Claim) Contest {
	var mine, oldest Claim
	for i, c := range claims {
		if c.Name == name {
			mine = c
		}
		if i == 0 || c.before(oldest) {
			oldest = c
		}
	}
	if oldest.Name != mine.Name {
		return Contest{Older: oldest.Name}
	}
	for _, c := range claims {
		if c.Name != name && c.Holds {
			return Contest{Holder: c.Name}
		}
	}
	return Contest{}
}
