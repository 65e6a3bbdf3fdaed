// One check stands for those of near addresses, where all of them are accessed.
#include "codegen/merge_checks.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

namespace gpurun::test {
namespace {

constexpr const char* declarations = R"(
declare i1 @gpurun_is_outside(i64, i32, i64) #2
define i32 @native_dirty(i32 %shift, i32 %address, i64 %offset) #2 {
  %wide = zext i32 %address to i64
  %at = add i64 %wide, %offset
  %by = zext i32 %shift to i64
  %piece = lshr i64 %at, %by
  %bit = trunc i64 %piece to i32
  %result = shl i32 1, %bit
  ret i32 %result
}
declare i32 @left(i32) #0
declare void @store(i64, i32)
attributes #0 = { "gpurun-leaves" }
attributes #2 = { noinline nounwind willreturn memory(none) }
)";

// The function @f of a text after the pass, with a memory of at least a page.
class Merged {
public:
    explicit Merged(const std::string& text) {
        llvm::SMDiagnostic problem;
        module_ = llvm::parseAssemblyString(text + declarations, problem, context_);
        EXPECT_TRUE(module_) << problem.getMessage().str();
        llvm::FunctionAnalysisManager analyses;
        codegen::MergeChecksPass(1 << 16).run(function(), analyses);
        std::string errors;
        llvm::raw_string_ostream out(errors);
        EXPECT_FALSE(llvm::verifyModule(*module_, &out)) << errors << ir();
    }

    llvm::Function& function() { return *module_->getFunction("f"); }
    // Returns how many comparisons of addresses with the end of memory there are.
    int checks() {
        int count = 0;
        for (const llvm::Instruction& instruction : llvm::instructions(function()))
            if (auto* compare = llvm::dyn_cast<llvm::ICmpInst>(&instruction))
                count += compare->getPredicate() == llvm::CmpInst::ICMP_UGT;
        return count;
    }
    int notes() {
        int count = 0;
        for (const llvm::Instruction& instruction : llvm::instructions(function()))
            count += instruction.getOpcode() == llvm::Instruction::Shl;
        return count;
    }
    bool has(const std::string& text) { return ir().find(text) != std::string::npos; }
    std::string ir() {
        std::string text;
        llvm::raw_string_ostream out(text);
        function().print(out);
        return text;
    }

private:
    llvm::LLVMContext context_;
    std::unique_ptr<llvm::Module> module_;
};

TEST(MergeChecks, NearAddressesHaveOne) {
    Merged merged(R"(
define i32 @f(i64 %size, i32 %shift, i32 %x) {
  %bad = call i1 @gpurun_is_outside(i64 %size, i32 %x, i64 4)
  br i1 %bad, label %leave, label %on
on:
  %note = call i32 @native_dirty(i32 %shift, i32 %x, i64 0)
  %dirty = or i32 0, %note
  %wide = zext i32 %x to i64
  call void @store(i64 %wide, i32 1)
  %y = add i32 %x, 40
  %worse = call i1 @gpurun_is_outside(i64 %size, i32 %y, i64 8)
  br i1 %worse, label %leave, label %more
more:
  %second = call i32 @native_dirty(i32 %shift, i32 %y, i64 0)
  %both = or i32 %dirty, %second
  %wider = zext i32 %y to i64
  call void @store(i64 %wider, i32 2)
  ret i32 %both
leave:
  %where = phi i32 [ 1, %0 ], [ 2, %on ]
  %why = call i32 @left(i32 %where) #0
  ret i32 %why
})");
    EXPECT_EQ(merged.checks(), 1) << merged.ir();
    EXPECT_EQ(merged.notes(), 1) << merged.ir();
    // The first reaches to the end of the second, and the second address cannot wrap.
    EXPECT_TRUE(merged.has("sub i64 %size, 48")) << merged.ir();
    EXPECT_TRUE(merged.has("add nuw nsw i64")) << merged.ir();
}

TEST(MergeChecks, WhatMayNotBeAccessedIsCheckedByItself) {
    Merged merged(R"(
define i32 @f(i64 %size, i32 %x, i1 %wanted) {
  %bad = call i1 @gpurun_is_outside(i64 %size, i32 %x, i64 4)
  br i1 %bad, label %leave, label %on
on:
  br i1 %wanted, label %more, label %done
more:
  %y = add i32 %x, 4
  %worse = call i1 @gpurun_is_outside(i64 %size, i32 %y, i64 4)
  br i1 %worse, label %leave, label %done
done:
  ret i32 0
leave:
  %where = phi i32 [ 1, %0 ], [ 2, %more ]
  %why = call i32 @left(i32 %where) #0
  ret i32 %why
})");
    EXPECT_EQ(merged.checks(), 2) << merged.ir();
}

TEST(MergeChecks, AreOfNoUseWhereTheyWereNotPassed) {
    // The second is reached from where the first failed as well.
    Merged merged(R"(
define i32 @f(i64 %size, i32 %x) {
  %bad = call i1 @gpurun_is_outside(i64 %size, i32 %x, i64 4)
  br i1 %bad, label %around, label %on
on:
  br label %around
around:
  %worse = call i1 @gpurun_is_outside(i64 %size, i32 %x, i64 4)
  br i1 %worse, label %leave, label %done
done:
  ret i32 0
leave:
  %why = call i32 @left(i32 1) #0
  ret i32 %why
})");
    EXPECT_EQ(merged.checks(), 2) << merged.ir();
}

TEST(MergeChecks, AreNotWidenedByWhatComesBehindTheirLoop) {
    Merged merged(R"(
define i32 @f(i64 %size, i32 %x) {
entry:
  br label %head
head:
  %p = phi i32 [ %x, %entry ], [ %next, %on ]
  %bad = call i1 @gpurun_is_outside(i64 %size, i32 %p, i64 1)
  br i1 %bad, label %leave, label %on
on:
  %next = sub i32 %p, 1
  %more = icmp ne i32 %next, 0
  br i1 %more, label %head, label %behind
behind:
  %y = add i32 %p, 1000
  %worse = call i1 @gpurun_is_outside(i64 %size, i32 %y, i64 4)
  br i1 %worse, label %leave, label %done
done:
  ret i32 0
leave:
  %where = phi i32 [ 1, %head ], [ 2, %behind ]
  %why = call i32 @left(i32 %where) #0
  ret i32 %why
})");
    EXPECT_EQ(merged.checks(), 2) << merged.ir();
}

TEST(MergeChecks, AreNotNeededBelowTheLeastSize) {
    Merged merged(R"(
define i32 @f(i64 %size) {
  %bad = call i1 @gpurun_is_outside(i64 %size, i32 65532, i64 4)
  br i1 %bad, label %leave, label %on
on:
  %worse = call i1 @gpurun_is_outside(i64 %size, i32 65533, i64 4)
  br i1 %worse, label %leave, label %done
done:
  ret i32 0
leave:
  %where = phi i32 [ 1, %0 ], [ 2, %on ]
  %why = call i32 @left(i32 %where) #0
  ret i32 %why
})");
    EXPECT_EQ(merged.checks(), 1) << merged.ir();
}

TEST(MergeChecks, NotesAreGoodForSoManyBytes) {
    Merged merged(R"(
define i32 @f(i64 %size, i32 %shift, i32 %x) {
  %bad = call i1 @gpurun_is_outside(i64 %size, i32 %x, i64 2000)
  br i1 %bad, label %leave, label %on
on:
  %note = call i32 @native_dirty(i32 %shift, i32 %x, i64 0)
  %dirty = or i32 0, %note
  %far = call i32 @native_dirty(i32 %shift, i32 %x, i64 1000)
  %both = or i32 %dirty, %far
  %near = call i32 @native_dirty(i32 %shift, i32 %x, i64 1100)
  %all = or i32 %both, %near
  ret i32 %all
leave:
  %why = call i32 @left(i32 1) #0
  ret i32 %why
})");
    EXPECT_EQ(merged.notes(), 2) << merged.ir();
}

}  // namespace
}  // namespace gpurun::test
