// Package conversion converts custom resources between the versions of their definition, when the API server asks.
//
// One version is the hub; every other version converts to and from it ([Hub], [Convertible]):
//
//	func (*Website) Hub() {} // of v2
//
//	func (w *Website) ConvertTo(hub conversion.Hub) error   { to := hub.(*v2.Website); … } // of v1
//	func (w *Website) ConvertFrom(hub conversion.Hub) error { from := hub.(*v2.Website); … }
//
// ctrl.NewWebhookManagedBy finds such types in the manager's scheme and serves them at /convert. A [Converter] does
// without methods on the types. A conversion has to keep what the other version cannot express, for example in an
// annotation: an object is read in one version and written back in another.
//
// # What is promised
//
//   - The answer has the objects in the order in which they were sent. If one cannot be converted, the answer says
//     which and why, and has none. A panic is such a failure; it is logged with its stack, and counted.
//   - Metadata is copied before a conversion begins, so a conversion need not copy it. It may change labels and
//     annotations; the API server takes no other change of metadata.
//   - An object that has the wanted version already is returned as it is.
//
// Read convertible.go first, then webhook.go, which has the protocol, too.
package conversion
