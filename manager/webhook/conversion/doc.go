// Package conversion converts custom resources between the versions of their definition, when the API server asks.
//
// One version is the hub; every other version converts to and from it ([Hub], [Convertible]):
//
//	func (*Website) Hub() {} // of v2
//
//	func (w *Website) ConvertTo(hub conversion.Hub) error   { to := hub.(*v2.Website); … } // of v1
//	func (w *Website) ConvertFrom(hub conversion.Hub) error { from := hub.(*v2.Website); … }
//
// ctrl.NewWebhookManagedBy finds such types in the manager's scheme and serves them at /convert. A [Converter] needs no
// methods on the types. An object may be read in one version and written back in another, so a conversion must preserve
// fields that the other version does not have, for example in an annotation.
//
// # Promises
//
//   - The answer has the objects in the order of the request. If one cannot be converted, the answer has no objects,
//     and its message names the object and the reason. A panic is such a failure; it is logged with its stack, and
//     counted.
//   - Metadata is copied before a conversion begins, so a conversion need not copy it. It may change labels and
//     annotations; the API server accepts no other change of metadata.
//   - An object that already has the desired version is returned unchanged.
//
// Read convertible.go first, then webhook.go, which has the protocol, too.
package conversion
