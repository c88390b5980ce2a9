#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HypothesisId(pub u32);
#[derive(Debug)]
pub struct Boundaries;
impl Boundaries {
    pub fn start(&self) -> HypothesisId { HypothesisId(0) }
    pub fn step(&self, h: HypothesisId, _b: u8) -> Option<HypothesisId> { Some(h) }
    pub fn close(&self, _h: HypothesisId) -> &[HypothesisId] { &[] }
    pub fn can_end(&self, _h: HypothesisId) -> bool { true }
}
#[derive(Debug)]
pub struct PreTokenizer(Boundaries);
impl PreTokenizer { pub fn boundaries(&self) -> Option<&Boundaries> { Some(&self.0) } }
