package oracle

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// register is an annotation with which a device plugin that works with HAMi
// names its cards.
type register struct {
	annotation, vendor, plugin string
	sharing                    string // what bounds a slice of the cards; "": they are given out whole
}

// registers lists those that are read.
func registers() []register {
	all := []register{
		{"hami.io/node-nvidia-register", "nvidia", "nvidia.com/gpu", "soft"},
		{"hami.io/node-dcu-register", "hygon", "hygon.com/dcunum", "driver"},
		{"hami.io/node-biren-register", "biren", "birentech.com/gpu", ""},
		{"hami.io/node-register-xpu", "kunlun", "kunlunxin.com/vxpu", ""},
		{"metax-tech.com/node-gpu-devices", "metax", "metax-tech.com/sgpu", "driver"},
	}
	for _, model := range []string{"910A", "910B2", "910B3", "910B4", "910B4-1", "910C", "310P"} {
		all = append(all, register{"hami.io/node-register-Ascend" + model, "ascend", "huawei.com/Ascend" + model, ""})
	}
	for _, model := range []string{"MR-V100", "MR-V50", "BI-V150", "BI-V100"} {
		all = append(all, register{"hami.io/node-" + model + "-register", "iluvatar", "iluvatar.ai/" + model + "-vgpu", "soft"})
	}
	return all
}

// entry of a register. MetaX has words of its own for the same.
type registered struct {
	ID      string `json:"id"`
	Index   int    `json:"index"`
	Count   int    `json:"count"`
	Devmem  int64  `json:"devmem"`
	Devcore int64  `json:"devcore"`
	Type    string `json:"type"`
	NUMA    int    `json:"numa"`
	Health  bool   `json:"health"`
	Mode    string `json:"mode"`

	UUID     string `json:"uuid"`
	Model    string `json:"model"`
	DevCount int    `json:"totalDevCount"`
	Compute  int64  `json:"totalCompute"`
	VRam     int64  `json:"totalVRam"`
	Healthy  bool   `json:"healthy"`
}

// read returns the cards of the register, in JSON or in the older text.
func (r register) read(text string) ([]card, error) {
	var list []registered
	if strings.HasPrefix(text, "[") {
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, err
		}
	} else {
		for item := range strings.SplitSeq(strings.TrimSuffix(text, ":"), ":") {
			d, err := registeredOf(strings.Split(item, ","))
			if err != nil {
				return nil, err
			}
			list = append(list, d)
		}
	}
	indexed := false
	for _, d := range list {
		indexed = indexed || d.Index != 0
	}
	cards := make([]card, len(list))
	for i, d := range list {
		if !indexed {
			d.Index = i
		}
		cards[i] = r.card(d)
	}
	return cards, nil
}

// left reports whether the register has outlived its plugin: kubelet has nothing
// of its resource, or just as much as a plugin that shares no cards would have.
func (r register) left(node *corev1.Node, cards []card) bool {
	there := node.Status.Allocatable[corev1.ResourceName(r.plugin)]
	shares := 0
	for i := range cards {
		shares += cards[i].MaxSlices
	}
	return there.Value() <= 0 || shares > len(cards) && there.Value() <= int64(len(cards))
}

// registeredOf reads the fields of the older text: 7, or 9 with index and mode.
func registeredOf(fields []string) (registered, error) {
	if len(fields) != 7 && len(fields) != 9 {
		return registered{}, fmt.Errorf("%d fields", len(fields))
	}
	d := registered{ID: fields[0], Type: fields[4], Health: fields[6] == "true"}
	numbers := map[int]func(int64){
		1: func(v int64) { d.Count = int(v) }, 2: func(v int64) { d.Devmem = v }, 3: func(v int64) { d.Devcore = v },
		5: func(v int64) { d.NUMA = int(v) },
	}
	if len(fields) == 9 {
		numbers[7], d.Mode = func(v int64) { d.Index = int(v) }, fields[8]
	}
	for at, set := range numbers {
		v, err := strconv.ParseInt(fields[at], 10, 64)
		if err != nil {
			return registered{}, err
		}
		set(v)
	}
	return d, nil
}

// card is the entry as the scheduler has to take it: HAMi has kept back and
// overcommitted already.
func (r register) card(d registered) card {
	c := card{
		UUID: d.ID + d.UUID, Index: d.Index, Vendor: r.vendor, Model: d.Type + d.Model, MemoryMiB: d.Devmem + d.VRam, Cores: 100,
		NUMA: &d.NUMA, Healthy: d.Health || d.Healthy, Mode: "whole", MaxSlices: d.Count + d.DevCount, Isolation: "none", plugin: r.plugin,
	}
	c.usable = c.MemoryMiB
	switch {
	case d.Mode == "mig":
		c.Mode = "mig"
	case r.sharing != "":
		c.Mode, c.Isolation = "slice", r.sharing
		if compute := d.Devcore + d.Compute; compute > 0 {
			c.Cores = min(100, compute)
		}
	}
	if d.Mode == "mps" {
		c.Isolation = "driver"
	}
	return c
}
