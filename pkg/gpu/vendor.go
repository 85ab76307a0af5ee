package gpu

import "strings"

// Vendor is the maker of a card, by its key in annotations and the inventory.
type Vendor string

// The ten vendors, in the order in which a node's cards are detected.
const (
	Musa      Vendor = "musa"      // Moore Threads
	Hygon     Vendor = "hygon"     // Hygon DCU
	Cambricon Vendor = "cambricon" // Cambricon MLU
	Biren     Vendor = "biren"     // Biren
	Ascend    Vendor = "ascend"    // Huawei Ascend
	Kunlun    Vendor = "kunlun"    // Kunlunxin
	Iluvatar  Vendor = "iluvatar"  // Iluvatar CoreX
	Nvidia    Vendor = "nvidia"    // NVIDIA
	Metax     Vendor = "metax"     // MetaX
	Enflame   Vendor = "enflame"   // Enflame
)

// Vendors lists all vendors in detection order.
func Vendors() []Vendor {
	return []Vendor{Musa, Hygon, Cambricon, Biren, Ascend, Kunlun, Iluvatar, Nvidia, Metax, Enflame}
}

// ParseVendor reads a vendor key in any case; false when there is no such vendor.
// It returns one of the constants, so that all cards of a vendor share its text.
func ParseVendor(s string) (Vendor, bool) {
	s = strings.ToLower(s)
	for _, v := range Vendors() {
		if string(v) == s {
			return v, true
		}
	}
	return "", false
}
