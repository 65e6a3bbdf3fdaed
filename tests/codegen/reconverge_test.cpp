// Lanes meet again in loops where some may leave: what all ways passed that stay, all ways pass.
#include "codegen/reconverge.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/CFG.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

namespace gpurun::test {
namespace {

// What the last block of all leaving calls.
constexpr const char* end_of_leaving = R"(
declare i32 @left(i32) #0
attributes #0 = { "gpurun-leaves" }
attributes #1 = { "gpurun-meets" }
)";

// The function @f of a text after the pass.
class Passed {
public:
    explicit Passed(const std::string& text) {
        llvm::SMDiagnostic problem;
        module_ = llvm::parseAssemblyString(text + end_of_leaving, problem, context_);
        EXPECT_TRUE(module_) << problem.getMessage().str();
        codegen::reconverge(function());
        std::string errors;
        llvm::raw_string_ostream out(errors);
        EXPECT_FALSE(llvm::verifyModule(*module_, &out)) << errors << ir();
    }

    llvm::Function& function() { return *module_->getFunction("f"); }
    llvm::BasicBlock* block(const std::string& name) {
        for (llvm::BasicBlock& block : function())
            if (block.getName() == name) return &block;
        ADD_FAILURE() << "no block " << name;
        return &function().getEntryBlock();
    }
    // Returns true if all ways from `from` pass `to`, or the block that tests the flag before it.
    bool all_pass(const std::string& from, const std::string& to) {
        llvm::PostDominatorTree tree(function());
        llvm::BasicBlock* block_to = block(to);
        if (tree.dominates(block_to, block(from))) return true;
        for (llvm::BasicBlock* before : llvm::predecessors(block_to))
            if (before->getName().starts_with("meet") && tree.dominates(before, block(from)))
                return true;
        return false;
    }
    // Returns true if every cycle is a loop that is entered by its head alone.
    bool is_reducible() {
        const llvm::DominatorTree dominators(function());
        const llvm::LoopInfo loops(dominators);
        llvm::ReversePostOrderTraversal<const llvm::Function*> order(&function());
        return !llvm::containsIrreducibleCFG<const llvm::BasicBlock*>(order, loops);
    }
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

TEST(Reconverge, MeetsBehindABranchInALoop) {
    Passed passed(R"(
define i32 @f(i32 %n, i32 %limit) #1 {
entry:
  br label %head
head:
  %i = phi i32 [ 0, %entry ], [ %next, %join ]
  %late = icmp ugt i32 %i, %limit
  br i1 %late, label %leave_late, label %body
body:
  %bit = and i32 %i, 1
  %odd = icmp ne i32 %bit, 0
  br i1 %odd, label %then, label %else
then:
  %bad = icmp ugt i32 %n, 1000
  br i1 %bad, label %leave_then, label %then_on
then_on:
  %a = mul i32 %i, 3
  br label %join
else:
  %worse = icmp ugt i32 %n, 2000
  br i1 %worse, label %leave_else, label %else_on
else_on:
  %b = add i32 %i, 7
  br label %join
join:
  %v = phi i32 [ %a, %then_on ], [ %b, %else_on ]
  %next = add i32 %v, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %head, label %done
done:
  ret i32 %v
leave_late:
  br label %last
leave_then:
  br label %last
leave_else:
  br label %last
last:
  %where = phi i32 [ 1, %leave_late ], [ 2, %leave_then ], [ 3, %leave_else ]
  %why = call i32 @left(i32 %where) #0
  ret i32 %why
})");
    EXPECT_TRUE(passed.all_pass("body", "join")) << passed.ir();
    EXPECT_TRUE(passed.all_pass("join", "done")) << passed.ir();
    EXPECT_TRUE(passed.all_pass("head", "done")) << passed.ir();
    EXPECT_TRUE(passed.is_reducible()) << passed.ir();
}

TEST(Reconverge, NeverGoesIntoALoopButByItsHead) {
    Passed passed(R"(
define i32 @f(i32 %n, i32 %limit) #1 {
entry:
  br label %outer
outer:
  %i = phi i32 [ 0, %entry ], [ %i_next, %outer_end ]
  %late = icmp ugt i32 %i, %limit
  br i1 %late, label %leave_outer, label %inner
inner:
  %j = phi i32 [ 0, %outer ], [ %j_next, %join ]
  %bit = and i32 %j, 1
  %odd = icmp ne i32 %bit, 0
  br i1 %odd, label %then, label %join
then:
  %bad = icmp ugt i32 %j, %limit
  br i1 %bad, label %leave_then, label %join
join:
  %v = phi i32 [ 5, %inner ], [ %j, %then ]
  %j_next = add i32 %j, 1
  %more = icmp ult i32 %j_next, %n
  br i1 %more, label %inner, label %outer_end
outer_end:
  %i_next = add i32 %i, %v
  %again = icmp ult i32 %i_next, %n
  br i1 %again, label %outer, label %done
done:
  ret i32 %v
leave_outer:
  br label %last
leave_then:
  br label %last
last:
  %where = phi i32 [ %i, %leave_outer ], [ %j, %leave_then ]
  %why = call i32 @left(i32 %where) #0
  ret i32 %why
})");
    EXPECT_TRUE(passed.all_pass("inner", "join")) << passed.ir();
    EXPECT_TRUE(passed.all_pass("inner", "outer_end")) << passed.ir();
    EXPECT_TRUE(passed.all_pass("outer", "done")) << passed.ir();
    EXPECT_TRUE(passed.is_reducible()) << passed.ir();
}

TEST(Reconverge, SharesTheReturnOfThoseWhoStay) {
    Passed passed(R"(
define i32 @f(i32 %n) #1 {
entry:
  %bad = icmp ugt i32 %n, 1000
  br i1 %bad, label %last, label %on
on:
  %v = mul i32 %n, 3
  br label %return
last:
  %why = call i32 @left(i32 %n) #0
  br label %return
return:
  %result = phi i32 [ %v, %on ], [ %why, %last ]
  ret i32 %result
})");
    EXPECT_TRUE(passed.is_reducible()) << passed.ir();
}

TEST(Reconverge, TakesLoopsWithoutAnEnd) {
    Passed passed(R"(
define i32 @f(i32 %n) #1 {
entry:
  br label %head
head:
  %i = phi i32 [ 0, %entry ], [ %a, %then ], [ %b, %else ]
  %bit = and i32 %i, 1
  %odd = icmp ne i32 %bit, 0
  br i1 %odd, label %then, label %check
check:
  %bad = icmp ugt i32 %i, %n
  br i1 %bad, label %leave, label %else
then:
  %a = add i32 %i, 3
  br label %head
else:
  %b = add i32 %i, 5
  br label %head
leave:
  br label %last
last:
  %why = call i32 @left(i32 %i) #0
  ret i32 %why
})");
    EXPECT_TRUE(passed.is_reducible()) << passed.ir();
}

}  // namespace
}  // namespace gpurun::test
